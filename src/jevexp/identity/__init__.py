"""Who answers: what was declared, what is served, and what the weights' own bytes say."""

from jevexp.identity.config_file import model_config
from jevexp.identity.fingerprint import fingerprint
from jevexp.identity.gguf import GgufHeader, read_header
from jevexp.identity.observed import Observed, observe
from jevexp.identity.reconcile import reconcile
from jevexp.identity.weights import Digest, WeightsError, file_sha256

__all__ = [
    "Digest",
    "GgufHeader",
    "Observed",
    "WeightsError",
    "file_sha256",
    "fingerprint",
    "model_config",
    "observe",
    "read_header",
    "reconcile",
]
