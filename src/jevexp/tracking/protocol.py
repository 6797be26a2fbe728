"""What the rest of jevexp knows about tracking."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from jevexp.core.task import Task
from jevexp.store import RunDirectory
from jevexp.tracking.links import Links

# Low and high at 95 %, by the summary's name of a metric.
Intervals = Mapping[str, tuple[float, float]]
WriteFiles = Callable[[Path], None]


def no_intervals() -> Intervals:
    """Nothing is known about how sure the numbers are."""
    return {}


@dataclass(frozen=True, slots=True)
class RunReport:
    """What is logged with a run beside its evidence; nothing is computed that is there already.

    Attributes:
        intervals: computes the intervals of the headline numbers.
        report: writes report.html and its plots into a folder, or nothing where there is nothing
            to say; None for no report.
    """

    intervals: Callable[[], Intervals] = no_intervals
    report: WriteFiles | None = None


NOTHING = RunReport()


@dataclass(frozen=True, slots=True)
class SweepComparison:
    """A sweep's runs held against each other, to be logged as a run of its own.

    Attributes:
        sweep: the name of the sweep's directory.
        name: what people see in lists.
        runs: the directories that were compared.
        names: makes names that tell the sweep's runs apart, by their ids in the tracker.
        note: makes the description in Markdown.
        report: writes the report, its plots and its data into a folder.
    """

    sweep: str
    name: str
    runs: Sequence[RunDirectory]
    names: Callable[[], Mapping[str, str]]
    note: Callable[[], str]
    report: WriteFiles


class TrackingError(Exception):
    """A run could not be logged, or found. The message is one line without secrets.

    Nothing is lost: the run directory is complete, and `jevexp export RUN` logs it later.
    """


class Change(StrEnum):
    """What logging a directory did to the tracker."""

    CREATED = "logged"
    """The run is new."""
    UPDATED = "updated"
    """An earlier state of the run, or half of it, was there; now it is all there."""
    NONE = "unchanged"
    """The same evidence was there already."""


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """A run as the tracker knows it.

    Attributes:
        run_id: the tracker's own id.
        experiment_id: the tracker's id of the experiment that holds it.
        name: what people see in lists.
        directory: the name of the run directory.
        change: what logging it did; NONE where it was only looked up.
        traced: whether it has its traces.
    """

    run_id: str
    experiment_id: str
    name: str
    directory: str
    change: Change = Change.NONE
    traced: bool = False


class Tracker(Protocol):
    """Keeps finished runs where they can be looked at side by side."""

    def log(
        self,
        directory: RunDirectory,
        tasks: Sequence[Task] | None = None,
        report: RunReport = NOTHING,
    ) -> TrackedRun | None:
        """Log a finished run from its directory; once, however often it is called.

        Args:
            directory: the run's directory; it is only read.
            tasks: the tasks that were planned, for the right answers in the per-task table.
            report: what else is known about the run.

        Returns:
            The run as it is tracked now, or None where nothing is tracked.

        Raises:
            TrackingError: it could not be logged; the directory is untouched.
        """

    def log_comparison(self, comparison: SweepComparison) -> TrackedRun | None:
        """Log the comparison of a sweep as a run of its own; once, however often it is called.

        Returns:
            That run, or None where nothing is tracked.

        Raises:
            TrackingError: it could not be logged.
        """

    def runs(self, sweep: str | None = None) -> list[TrackedRun]:
        """The runs of a sweep, oldest first; without one, the newest runs worth comparing.

        Raises:
            TrackingError: the tracker cannot be asked.
        """

    def comparisons(self, runs: Sequence[TrackedRun]) -> list[TrackedRun]:
        """The comparison of the sweep that the first of these runs belongs to, if there is one.

        Raises:
            TrackingError: the tracker cannot be asked.
        """

    def select(self, where: str) -> list[TrackedRun]:
        """The runs that a filter selects, oldest first.

        Args:
            where: in the tracker's own language, such as "tags.jev.sweep = '…'".

        Raises:
            TrackingError: the tracker cannot be asked, or does not understand the filter.
        """

    def fetch(self, run_id: str, into: Path) -> RunDirectory:
        """The directory that a run was logged from, if it is here and unchanged; else a copy.

        Args:
            run_id: the tracker's own id.
            into: a folder for what has to be downloaded.

        Raises:
            TrackingError: there is no such run, or its files are not those that were logged.
        """

    def check_own(self) -> None:
        """Refuse a place that nobody named and that may be somebody else's.

        Raises:
            InputError: naming it, and how a person says that it is theirs.
        """

    def check(self) -> str:
        """Where runs would be logged, in words; nothing is made or changed.

        Raises:
            TrackingError: a run could not be logged.
        """

    def links(
        self,
        runs: Sequence[TrackedRun],
        base: str | None = None,
        comparisons: Sequence[TrackedRun] = (),
    ) -> Links | None:
        """Where a browser shows these runs.

        Args:
            runs: of one experiment.
            base: the address of a user interface; None means the usual one.
            comparisons: runs that hold the comparison of a sweep.

        Returns:
            None for no runs, or where nothing is tracked.
        """


class NoTracker:
    """Tracks nothing."""

    def log(
        self,
        directory: RunDirectory,
        tasks: Sequence[Task] | None = None,
        report: RunReport = NOTHING,
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
