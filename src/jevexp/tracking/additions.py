"""What others computed about runs, to be logged with them: tracking knows no statistics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jevexp.store import RunDirectory

# Low and high at 95 %, by the summary's name of a metric.
Intervals = Mapping[str, tuple[float, float]]
WriteFiles = Callable[[Path], None]


def no_intervals() -> Intervals:
    """Nothing is known about how sure the numbers are."""
    return {}


@dataclass(frozen=True, slots=True)
class Additions:
    """What is logged with a run beside its evidence; nothing is computed that is there already.

    Attributes:
        intervals: computes the intervals of the headline numbers.
        report: writes report.html and its plots into a folder, or nothing where there is nothing
            to say; None for no report.
    """

    intervals: Callable[[], Intervals] = no_intervals
    report: WriteFiles | None = None


NOTHING = Additions()


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
