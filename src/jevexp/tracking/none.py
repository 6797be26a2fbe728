"""No tracking: the run directory is all there is."""

from collections.abc import Sequence
from pathlib import Path

from jevexp.core.task import Task
from jevexp.store import RunDirectory
from jevexp.tracking.additions import NOTHING, Additions, SweepComparison
from jevexp.tracking.links import Links
from jevexp.tracking.protocol import TrackedRun, TrackingError


class NoTracker:
    """Tracks nothing."""

    def log(
        self,
        directory: RunDirectory,
        tasks: Sequence[Task] | None = None,
        additions: Additions = NOTHING,
    ) -> None:
        """Do nothing."""

    def log_comparison(self, comparison: SweepComparison) -> None:
        """Do nothing."""

    def runs(self, sweep: str | None = None) -> list[TrackedRun]:  # noqa: ARG002  the protocol's
        """No runs."""
        return []

    def comparisons(self, runs: Sequence[TrackedRun]) -> list[TrackedRun]:  # noqa: ARG002
        """None."""
        return []

    def select(self, where: str) -> list[TrackedRun]:  # noqa: ARG002  the protocol's
        """No runs."""
        return []

    def fetch(self, run_id: str, into: Path) -> RunDirectory:  # noqa: ARG002  the protocol's
        """Refuse: nothing was ever logged."""
        raise TrackingError(f"run {run_id}: nothing is tracked (tracking.kind is none)")

    def check_own(self) -> None:
        """Nothing to refuse."""

    def check(self) -> str:
        """Nothing to check."""
        return "none"

    def links(
        self,
        runs: Sequence[TrackedRun],
        base: str | None = None,
        comparisons: Sequence[TrackedRun] = (),
    ) -> Links | None:
        """Nothing to look at."""
