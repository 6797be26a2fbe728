"""Who answers: what was declared, what is served, and what the weights' own bytes say."""

from jevexp.identity.config_file import model_config
from jevexp.identity.fingerprint import fingerprint
from jevexp.identity.observed import Observed, observe
from jevexp.identity.reconcile import reconcile

__all__ = ["Observed", "fingerprint", "model_config", "observe", "reconcile"]
