"""No tracking: the run directory is all there is."""

from collections.abc import Sequence

from jevexp.domain.task import Task
from jevexp.evidence import RunDirectory
from jevexp.tracking.links import Links
from jevexp.tracking.protocol import TrackedRun


class NoTracker:
    """Tracks nothing."""

    def log(self, directory: RunDirectory, tasks: Sequence[Task] | None = None) -> None:
        """Do nothing."""

    def runs(self, sweep: str | None = None) -> list[TrackedRun]:  # noqa: ARG002  the protocol's
        """No runs."""
        return []

    def check(self) -> str:
        """Nothing to check."""
        return "none"

    def links(self, runs: Sequence[TrackedRun], base: str | None = None) -> Links | None:
        """Nothing to look at."""
