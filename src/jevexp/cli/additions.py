"""What the statistics say about a run, for whoever keeps track of it."""

from collections.abc import Sequence

from jevexp.analysis.compare import describe
from jevexp.analysis.metric import Options
from jevexp.analysis.runs import read_run
from jevexp.domain.task import Task
from jevexp.errors import InputError
from jevexp.evidence import RunDirectory
from jevexp.tracking import Additions, Intervals


def additions(directory: RunDirectory, tasks: Sequence[Task] | None) -> Additions:
    """What is logged with a run beside its evidence; computed only if it is needed."""
    return Additions(intervals=lambda: _intervals(directory, tasks))


def _intervals(directory: RunDirectory, tasks: Sequence[Task] | None) -> Intervals:
    try:
        run = read_run(directory, lambda _: tasks)
    except InputError:
        # Nothing was asked, or what came back cannot be read: no numbers, so no intervals.
        return {}
    found = describe(run, Options()).runs[0]
    estimates = {
        "accuracy": found.accuracy,
        "brier_mean": found.brier,
        "ece": found.ece,
        "ordinal_mae": found.mae,
        "p50_s": found.latency and found.latency.median,
    }
    return {
        name: (estimate.interval.low, estimate.interval.high)
        for name, estimate in estimates.items()
        if estimate and estimate.interval
    }
