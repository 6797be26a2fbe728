"""The benchmark's protocol at the pin: scoring, ledger, runner, summary."""

from jevexp.harness.choose import Harness, make_harness
from jevexp.harness.pin import PINNED_COMMIT
from jevexp.harness.runner import Runner, RunOutcome
from jevexp.harness.scoring import Verdict, score
from jevexp.harness.session import SessionModel
from jevexp.harness.stops import StopReason
from jevexp.harness.summary import summarize
from jevexp.harness.tariff import Tariff
from jevexp.ledger import (
    CapReached,
    FileLedger,
    FilePlace,
    Ledger,
    LedgerError,
    LedgerUnavailable,
    Overcharged,
    OwnRows,
    Place,
    database_place,
)

__all__ = [
    "PINNED_COMMIT",
    "CapReached",
    "FileLedger",
    "FilePlace",
    "Harness",
    "Ledger",
    "LedgerError",
    "LedgerUnavailable",
    "Overcharged",
    "OwnRows",
    "Place",
    "RunOutcome",
    "Runner",
    "SessionModel",
    "StopReason",
    "Tariff",
    "Verdict",
    "database_place",
    "make_harness",
    "score",
    "summarize",
]
