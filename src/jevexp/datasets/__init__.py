"""Which tasks are asked: pinned files that are downloaded once, shipped ones, or your own."""

from jevexp.datasets.cache import FileState, cached_path, file_state
from jevexp.datasets.load import dataset_hash, load_tasks
from jevexp.datasets.resolve import LoadedDataset, LoadedFile, load_dataset, pull

__all__ = [
    "FileState",
    "LoadedDataset",
    "LoadedFile",
    "cached_path",
    "dataset_hash",
    "file_state",
    "load_dataset",
    "load_tasks",
    "pull",
]
