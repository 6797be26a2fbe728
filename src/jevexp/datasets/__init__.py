"""Which tasks are asked: pinned files that are downloaded once, shipped ones, or your own."""

from jevexp.datasets.pinned import FileState, cached_path, file_state
from jevexp.datasets.resolve import (
    LoadedDataset,
    LoadedFile,
    dataset_of,
    load_dataset,
    planned_tasks,
    planned_tasks_or_none,
    pull,
)
from jevexp.datasets.tasks import dataset_hash, load_tasks

__all__ = [
    "FileState",
    "LoadedDataset",
    "LoadedFile",
    "cached_path",
    "dataset_hash",
    "dataset_of",
    "file_state",
    "load_dataset",
    "load_tasks",
    "planned_tasks",
    "planned_tasks_or_none",
    "pull",
]
