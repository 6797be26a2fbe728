"""A sweep's runs held against each other, for whoever keeps track of them."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jevexp.analysis.compare import compare
from jevexp.analysis.comparison import Comparison
from jevexp.analysis.estimates import Options
from jevexp.analysis.report.page import PAGE, ReportPaths, write_report
from jevexp.analysis.runs import FinishedRun, check_comparable
from jevexp.cli.choose_runs import answered, read_runs
from jevexp.cli.comparison_note import comparison_note
from jevexp.core.json import dumps
from jevexp.tracking import SweepComparison, TrackedRun, Tracker
from jevexp.tracking.links import run_link
from jevexp.untrusted.writing import write_new


def log_sweep_comparison(
    tracker: Tracker, sweep: Path, tracked: Sequence[TrackedRun]
) -> TrackedRun | None:
    """Log the comparison of a sweep's runs on disk, the first one as the baseline.

    Args:
        tracker: where to.
        sweep: the sweep's directory.
        tracked: its runs, as far as the tracker has them.

    Returns:
        The comparison as it is tracked now; None where nothing is tracked, or for a single run.

    Raises:
        InputError: the runs cannot be compared.
        TrackingError: it could not be logged.
    """
    directories = answered(sweep)
    if not tracked or len(directories) < 2:
        return None
    runs = read_runs(directories)
    check_comparable(runs)
    addresses = {run.directory: run_link(run.experiment_id, run.run_id) for run in tracked}

    @cache
    def compared() -> Comparison:
        return compare(runs, Options())

    return tracker.log_comparison(
        SweepComparison(
            sweep=sweep.resolve().name,
            name=f"comparison · {runs[0].manifest.dataset.name} · {len(runs)} runs",
            runs=directories,
            names=lambda: _names(compared(), runs, tracked),
            note=lambda: comparison_note(compared(), str(sweep.resolve()), addresses.get),
            report=lambda folder: _write(compared(), runs, folder),
        )
    )


def _names(
    comparison: Comparison, runs: Sequence[FinishedRun], tracked: Sequence[TrackedRun]
) -> dict[str, str]:
    """What tells runs of one model apart, in their names: lists and charts show nothing else."""
    ids = {run.directory: run.run_id for run in tracked}
    return {
        ids[found.run]: run.manifest.titled(found.label)
        for found, run in zip(comparison.runs, runs, strict=True)
        if found.run in ids and found.label != run.manifest.model.declared.name
    }


def _write(comparison: Comparison, runs: Sequence[FinishedRun], folder: Path) -> None:
    write_report(comparison, runs, ReportPaths(folder / PAGE))
    write_new(folder / "comparison.json", dumps(comparison.plain(), indent=2).encode())
