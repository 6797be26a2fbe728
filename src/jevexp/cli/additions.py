"""What a tracker gets of a run beside its evidence: intervals, and the page with its plots."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jevexp.analysis.compare import describe
from jevexp.analysis.comparison import Comparison
from jevexp.analysis.estimates import Options
from jevexp.analysis.report.page import PAGE, ReportPaths, write_report
from jevexp.analysis.runs import FinishedRun, read_run
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.store import RunDirectory
from jevexp.tracking import Intervals, RunReport


def run_report(directory: RunDirectory, tasks: Sequence[Task] | None) -> RunReport:
    """What can be computed of a run; computed once for all trackers, and only if one needs it.

    Args:
        directory: the finished run.
        tasks: those that were planned; None where they cannot be had.
    """

    @cache
    def described() -> tuple[FinishedRun, Comparison] | None:
        try:
            run = read_run(directory, lambda _: tasks)
        except InputError:
            # Nothing was asked, or what came back cannot be read: there are no numbers.
            return None
        return run, describe(run, Options())

    def intervals() -> Intervals:
        run_and_comparison = described()
        return _intervals(run_and_comparison[1]) if run_and_comparison else {}

    def write(folder: Path) -> None:
        if run_and_comparison := described():
            run, comparison = run_and_comparison
            write_report(comparison, [run], ReportPaths(folder / PAGE))

    return RunReport(intervals, write)


def _intervals(comparison: Comparison) -> Intervals:
    run = comparison.runs[0]
    estimates = run.estimates | {"p50_s": run.latency and run.latency.median}
    return {
        name: (estimate.interval.low, estimate.interval.high)
        for name, estimate in estimates.items()
        if estimate and estimate.interval
    }
