"""The benchmark's protocol at the pin: scoring, ledger, runner, summary."""

from jevexp.harness.choose import Harness, make_harness
from jevexp.harness.ledger import (
    CapReached,
    FileLedger,
    Ledger,
    LedgerError,
    Overcharged,
    OwnRows,
)
from jevexp.harness.pin import PINNED_COMMIT
from jevexp.harness.runner import Runner, RunOutcome
from jevexp.harness.scoring import Verdict, score
from jevexp.harness.session import SessionModel
from jevexp.harness.stops import StopReason
from jevexp.harness.summary import summarize
from jevexp.harness.tariff import Tariff

__all__ = [
    "PINNED_COMMIT",
    "CapReached",
    "FileLedger",
    "Harness",
    "Ledger",
    "LedgerError",
    "Overcharged",
    "OwnRows",
    "RunOutcome",
    "Runner",
    "SessionModel",
    "StopReason",
    "Tariff",
    "Verdict",
    "make_harness",
    "score",
    "summarize",
]
