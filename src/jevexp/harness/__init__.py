"""The benchmark's protocol at the pin: scoring, ledger, runner, summary."""

from jevexp.harness.ledger import CapReached, Ledger, LedgerError, Overcharged
from jevexp.harness.runner import Runner, RunOutcome, StopReason, Tariff
from jevexp.harness.scoring import Verdict, score
from jevexp.harness.summary import summarize

# The commit of github.com/fstandhartinger/jevbench whose protocol this is.
PINNED_COMMIT = "bb05a335bc809e61b20c0f745d25499a82b326fc"

__all__ = [
    "PINNED_COMMIT",
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
