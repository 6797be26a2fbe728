"""One run from top to bottom: planned, identified, asked, written down, or resumed."""

from jevexp.run.planning import Launch, Plan, check_ledger, plan
from jevexp.run.running import Identification, Observer, Outcome, identify, run

__all__ = [
    "Identification",
    "Launch",
    "Observer",
    "Outcome",
    "Plan",
    "check_ledger",
    "identify",
    "plan",
    "run",
]
