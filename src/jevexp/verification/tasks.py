"""The tasks that a run was put, where they are here; nothing is downloaded to find them."""

import hashlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from jevexp.datasets import FileState, LoadedDataset, file_state, load_dataset
from jevexp.errors import InputError
from jevexp.settings import Dataset
from jevexp.store import Manifest
from jevexp.store.directory import MANIFEST
from jevexp.untrusted.files import opened
from jevexp.verification.check import Check

_PIECE = 1 << 20


class NotHere(Exception):
    """The tasks cannot be had; says why, and what to do."""


def check_tasks(manifest: Manifest, given: Path | None) -> tuple[Check, LoadedDataset | None]:
    """Find the tasks and hold them against what the manifest says of them.

    Args:
        manifest: the run's.
        given: a task file, or a folder of them, in place of where the run had them.
    """
    check = Check("tasks", "the dataset's files, number of tasks and order-independent hash")
    try:
        loaded = _load(manifest, given)
    except NotHere as reason:
        check.skip(f"tasks are not here: {reason}")
        return check, None
    said = manifest.dataset
    check.expect("dataset.dataset_hash", said.dataset_hash, loaded.dataset_hash, MANIFEST)
    check.expect("dataset.n_tasks", said.n_tasks, len(loaded.tasks), MANIFEST)
    check.expect("dataset.name", said.name, loaded.name, MANIFEST)
    check.expect("number of dataset.files", len(said.files), len(loaded.files), MANIFEST)
    for number, (entry, file) in enumerate(zip(said.files, loaded.files, strict=False)):
        for field in ("sha256", "bytes", "tasks"):
            place = f"dataset.files[{number}].{field}"
            check.expect(place, entry.get(field), getattr(file, field), MANIFEST)
    return check, None if check.failed else loaded


def _load(manifest: Manifest, given: Path | None) -> LoadedDataset:
    try:
        dataset = Dataset.of(manifest.config.resolved["dataset"], at="dataset")
        if given is not None and dataset.source != "shipped":
            dataset = dataset.model_copy(update={"path": str(given)})
        if dataset.source == "pinned" and not dataset.path:
            if {file_state(pin) for pin in dataset.files} != {FileState.CACHED}:
                raise NotHere(
                    "`jevexp data pull` downloads pinned ones; --tasks names a copy of them"
                )
        elif dataset.path:
            _check_copies(Path(dataset.path).expanduser(), manifest.dataset.files)
        return load_dataset(dataset)
    except (InputError, LookupError, TypeError, ValueError, RuntimeError, OSError) as error:
        # What is in a file that is none of the run's is not for a stranger's manifest to ask.
        raise NotHere("name the task file that the run was put with --tasks") from error


def _check_copies(path: Path, files: list[dict[str, Any]]) -> None:
    """Whether the files at a path are the ones that the run read, before any line is parsed."""
    for entry in files:
        copy = path / PurePosixPath(str(entry["name"])).name if path.is_dir() else path
        if not _is_same(copy, entry):
            raise NotHere(f"{copy} is not the file that the run read; name it with --tasks")


def _is_same(path: Path, entry: Mapping[str, Any]) -> bool:
    digest = hashlib.sha256()
    size = 0
    with opened(path) as file:
        while part := file.read(_PIECE):
            digest.update(part)
            size += len(part)
            if size > entry["bytes"]:
                return False
    return bool(digest.hexdigest() == entry["sha256"])
