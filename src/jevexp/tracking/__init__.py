"""Where finished runs are logged: MLflow, behind one small protocol."""

from pathlib import Path

from jevexp.settings import Tracking
from jevexp.tracking.links import Links
from jevexp.tracking.protocol import (
    NOTHING,
    Change,
    Intervals,
    NoTracker,
    RunReport,
    SweepComparison,
    TrackedRun,
    Tracker,
    TrackingError,
)
from jevexp.tracking.tracker import MlflowTracker

__all__ = [
    "NOTHING",
    "Change",
    "Intervals",
    "Links",
    "NoTracker",
    "RunReport",
    "SweepComparison",
    "TrackedRun",
    "Tracker",
    "TrackingError",
    "make_tracker",
]


def make_tracker(settings: Tracking, outputs: Path) -> Tracker:
    """The tracker that `settings` asks for; nothing is imported, opened or asked yet.

    Args:
        settings: which one, and where it logs.
        outputs: the folder of runs, where the default database lives.
    """
    if settings.kind == "none":
        return NoTracker()
    return MlflowTracker(settings, outputs)
