"""Finished runs on disk, and the tasks that they were put."""

from collections.abc import Sequence
from pathlib import Path

from jevexp.core.task import Task
from jevexp.datasets import load_dataset
from jevexp.errors import InputError
from jevexp.settings import Dataset
from jevexp.store import Manifest, RunDirectory
from jevexp.store.directory import MANIFEST


def run_directories(path: Path) -> list[RunDirectory]:
    """The run at `path`, or the runs right below it, in the order of a sweep.

    Raises:
        InputError: there is none.
    """
    if (path / MANIFEST).is_file():
        return [RunDirectory(path)]
    if not path.is_dir():
        raise InputError(f"{path}: no such folder; give a run directory, or a sweep's")
    below = [entry for entry in path.iterdir() if (entry / MANIFEST).is_file()]
    if not below:
        raise InputError(f"{path}: no run here and none right below: {MANIFEST} is missing")
    return [RunDirectory(entry) for entry in sorted(below, key=_order)]


def _order(path: Path) -> tuple[int, str]:
    number = path.name.partition("-")[0]
    return (int(number) if number.isdecimal() else 0, path.name)


def planned_tasks(manifest: Manifest) -> Sequence[Task] | None:
    """The tasks of a run, where they can be had without a download; else None."""
    try:
        dataset = Dataset.of(manifest.config.resolved["dataset"], at="dataset")
        loaded = load_dataset(dataset, may_download=False)
    except InputError:
        return None
    if loaded.dataset_hash != manifest.dataset.dataset_hash:
        return None
    return loaded.tasks[: manifest.counts.requested]
