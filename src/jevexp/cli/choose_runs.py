"""Which finished runs a command line means."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from jevexp.analysis.runs import FinishedRun, read_run
from jevexp.cli.export import planned_tasks, run_directories
from jevexp.domain.json import dumps
from jevexp.domain.task import Task
from jevexp.errors import InputError
from jevexp.evidence import Manifest, RunDirectory, RunStatus


def resolve(argument: str) -> list[RunDirectory]:
    """The run that an argument names, or those runs of a sweep that were not refused.

    The refused ones are named on standard error.

    Raises:
        InputError: there is no run.
    """
    path = Path(argument)
    found = run_directories(path)
    if found[0].path == path:
        return found
    answered = []
    for directory in found:
        if directory.read_manifest().status is RunStatus.REFUSED:
            Console(stderr=True, soft_wrap=True).print(
                f"left out: {directory.path} was refused", highlight=False, markup=False
            )
        else:
            answered.append(directory)
    return answered


def choose(arguments: Sequence[str], baseline: str | None = None) -> list[RunDirectory]:
    """The runs that the arguments name, the baseline first; without one in the order given.

    Raises:
        InputError: an argument names no run, or the baseline is not one run.
    """
    given = [directory for argument in arguments for directory in resolve(argument)]
    if baseline is None:
        return given
    found = resolve(baseline)
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
            known[key] = planned_tasks(manifest)
        return known[key]

    return [read_run(directory, find_tasks) for directory in directories]
