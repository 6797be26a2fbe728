"""One run: planned, asked, proved, tracked."""

from jevexp.experiment.asking import Observer
from jevexp.experiment.identifying import Identification, identify
from jevexp.experiment.planning import Launch, Plan, check_ledger, plan
from jevexp.experiment.running import Outcome, run

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
