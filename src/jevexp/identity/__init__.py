"""Who answers: what was declared, what is served, and what the weights' own bytes say."""

from jevexp.identity.config_file import model_config
from jevexp.identity.digest import Digest, file_sha256
from jevexp.identity.files import WeightsError
from jevexp.identity.findings import Finding, Level
from jevexp.identity.fingerprint import Fingerprint, fingerprint
from jevexp.identity.gguf_file import GgufHeader, read_header
from jevexp.identity.observed import Observed, Source, Value, observe
from jevexp.identity.reconcile import reconcile
from jevexp.identity.report import FieldReport, IdentityReport, Row, Verdict, shown, table_rows

__all__ = [
    "Digest",
    "FieldReport",
    "Finding",
    "Fingerprint",
    "GgufHeader",
    "IdentityReport",
    "Level",
    "Observed",
    "Row",
    "Source",
    "Value",
    "Verdict",
    "WeightsError",
    "file_sha256",
    "fingerprint",
    "model_config",
    "observe",
    "read_header",
    "reconcile",
    "shown",
    "table_rows",
]
