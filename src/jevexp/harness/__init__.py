"""The benchmark's protocol at the pin: scoring, ledger, runner, summary."""

from jevexp.harness.ledger import CapReached, Ledger, LedgerError, Overcharged
from jevexp.harness.runner import Runner, RunOutcome, StopReason, Tariff
from jevexp.harness.scoring import Verdict, score
from jevexp.harness.summary import summarize

__all__ = [
    "CapReached",
    "Ledger",
    "LedgerError",
    "Overcharged",
    "RunOutcome",
    "Runner",
    "StopReason",
    "Tariff",
    "Verdict",
    "score",
    "summarize",
]
