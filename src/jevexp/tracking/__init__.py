"""Where finished runs are logged: a narrow protocol, and any number of trackers behind it."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from jevexp.core.task import Task
from jevexp.settings import TRACKERS, TrackerSettings, Tracking
from jevexp.store import RunDirectory

# Low and high at 95 %, by the summary's name of a metric.
Intervals = Mapping[str, tuple[float, float]]
WriteFiles = Callable[[Path], None]


class TrackingError(Exception):
    """A run could not be logged, or found: one line without secrets. Its directory is complete."""


class Change(StrEnum):
    """What logging a directory did to the tracker.

    UPDATED: an earlier state of the run, or half of it, was there. NONE: the same evidence was.
    """

    CREATED = "logged"
    UPDATED = "updated"
    NONE = "unchanged"


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """A run as the tracker knows it, by its own ids of the run and of what holds it beside others.

    `directory` is the name of the run directory, `change` what logging it did (NONE where it was
    only looked up), `traced` whether it has its traces.
    """

    run_id: str
    experiment_id: str
    name: str
    directory: str
    change: Change = Change.NONE
    traced: bool = False


@dataclass(frozen=True, slots=True)
class RunReport:
    """What can be computed of a run; a tracker calls what it needs.

    `intervals` are those of the headline numbers. `write` writes report.html and its plots into a
    folder, or nothing where the run has no numbers; None where that would take too long.
    """

    intervals: Callable[[], Intervals] = dict
    write: WriteFiles | None = None


NO_REPORT = RunReport()


@dataclass(frozen=True, slots=True)
class SweepComparison:
    """A sweep's runs held against each other.

    Attributes:
        sweep: the name of the sweep's directory.
        name: its name in lists.
        runs: the directories that were compared.
        names: makes names that tell the sweep's runs apart, by the names of their directories.
        note: makes the description in Markdown, of the addresses of runs by their directories.
        report: writes the report, its plots and its data into a folder.
    """

    sweep: str
    name: str
    runs: Sequence[RunDirectory]
    names: Callable[[], Mapping[str, str]]
    note: Callable[[Mapping[str, str]], str]
    report: WriteFiles


class Tracker(ABC):
    """Keeps finished runs; a method that is not abstract does nothing unless it is overridden.

    Raises TrackingError: from every method: the tracker cannot be asked, or refuses. What it was
    told of is untouched.
    """

    @abstractmethod
    def check(self) -> str:
        """Where runs would be logged, in words; nothing is made or changed."""

    @abstractmethod
    def log(
        self,
        directory: RunDirectory,
        tasks: Sequence[Task] | None = None,
        report: RunReport = NO_REPORT,
    ) -> TrackedRun:
        """Log a finished run from its directory; once, however often it is called.

        Args:
            directory: the run's directory; it is only read.
            tasks: the tasks that were planned; None where they are not known.
            report: what else can be computed of the run.
        """

    def check_own(self) -> None:  # noqa: B027  most trackers have nothing to refuse
        """Refuse a place that nobody named and that may be somebody else's, before a run.

        Raises InputError: naming it, and how a person says that it is theirs.
        """

    def runs(self, sweep: str) -> Sequence[TrackedRun]:  # noqa: ARG002
        """The runs of a sweep that are logged, by whichever process, oldest first."""
        return ()

    def log_comparison(self, comparison: SweepComparison) -> TrackedRun | None:  # noqa: ARG002
        """Log the comparison of a sweep, once; None where the tracker keeps none."""
        return None

    def addresses(
        self,
        runs: Sequence[TrackedRun],  # noqa: ARG002
        comparisons: Sequence[TrackedRun] = (),  # noqa: ARG002
    ) -> Sequence[str]:
        """Where a person looks at runs and comparisons of this tracker: lines for a terminal."""
        return ()

    def export_command(self, path: Path) -> str | None:  # noqa: ARG002
        """The command that logs a run or a sweep later; None where there is none."""
        return None


def make_tracker(settings: TrackerSettings, outputs: Path) -> Tracker:
    """One tracker; nothing is opened or asked yet. `outputs` is the folder of runs.

    Raises InputError: the settings name something that cannot be used.
    """
    module = importlib.import_module(TRACKERS[settings.kind].module)
    tracker: Tracker = module.make(settings, outputs)
    return tracker


def make_trackers(settings: Tracking, outputs: Path) -> dict[str, Tracker]:
    """Every tracker that the settings ask for, by name, as `make_tracker` makes them."""
    return {name: make_tracker(entry, outputs) for name, entry in settings.trackers.items()}
