"""Which finished runs a command line means."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from jevexp.analysis.runs import FinishedRun, read_run
from jevexp.cli.console import make_console
from jevexp.cli.tracked import TrackedRuns, add_where, run_id_of
from jevexp.core.json import dumps
from jevexp.core.task import Task
from jevexp.datasets import planned_tasks_or_none
from jevexp.errors import InputError
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.store.finding import run_directories


def add_runs(parser: ArgumentParser) -> None:
    """Add the options that name runs: as arguments, the baseline, and MLflow's filter."""
    parser.add_argument(
        "runs", nargs="*", metavar="RUN", help="a run directory, a sweep's, or an MLflow run id"
    )
    parser.add_argument("--baseline", metavar="RUN", help="what the others are held to")
    add_where(parser)


def read_chosen(arguments: Namespace) -> list[FinishedRun]:
    """The runs that a command line with the options of `add_runs` names, the baseline first.

    Raises:
        InputError: there is no such run, or one cannot be read.
    """
    with TemporaryDirectory(prefix="jevexp-runs-") as folder:
        tracked = TrackedRuns(arguments, Path(folder))
        runs = read_runs(choose(arguments.runs, arguments.baseline, tracked))
        return [replace(run, path=tracked.name_of(run.path)) for run in runs]


def resolve(argument: str, tracked: TrackedRuns) -> list[RunDirectory]:
    """The run that an argument names, or a sweep's runs as far as they answered.

    Raises:
        InputError: there is no run.
    """
    if run_id := run_id_of(argument):
        return [tracked.fetch(run_id)]
    return answered(Path(argument))


def answered(path: Path) -> list[RunDirectory]:
    """The run at `path`, or those runs of a sweep that were not refused.

    The refused ones are named on standard error.

    Raises:
        InputError: there is no run.
    """
    found = run_directories(path)
    if found[0].path == path:
        return found
    kept = []
    for directory in found:
        if directory.read_manifest().status is RunStatus.REFUSED:
            make_console(stderr=True).print(
                f"left out: {directory.path} was refused", highlight=False, markup=False
            )
        else:
            kept.append(directory)
    return kept


def choose(
    arguments: Sequence[str], baseline: str | None, tracked: TrackedRuns
) -> list[RunDirectory]:
    """The runs that the arguments and the filter name; the baseline first, if there is one.

    Raises:
        InputError: an argument names no run, or the baseline is not one run.
    """
    given = [directory for argument in arguments for directory in resolve(argument, tracked)]
    given += tracked.selected()
    if baseline is None:
        return given
    found = resolve(baseline, tracked)
    if len(found) != 1:
        raise InputError(f"{baseline}: a baseline is one run, found {len(found)}")
    place = found[0].path.resolve()
    return [found[0], *(run for run in given if run.path.resolve() != place)]


def read_runs(directories: Sequence[RunDirectory]) -> list[FinishedRun]:
    """Read the runs; tasks that several of them share are read once.

    Raises:
        InputError: one cannot be read, or holds nothing to compare.
    """
    known: dict[tuple[str, str, int], Sequence[Task] | None] = {}

    def find_tasks(manifest: Manifest) -> Sequence[Task] | None:
        settings = dumps(manifest.config.resolved["dataset"], sort_keys=True)
        key = (settings, manifest.dataset.dataset_hash, manifest.counts.requested)
        if key not in known:
            known[key] = planned_tasks_or_none(manifest)
        return known[key]

    return [read_run(directory, find_tasks) for directory in directories]
