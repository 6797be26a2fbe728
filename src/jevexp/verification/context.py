"""What all checks look at: one run directory, its manifest, and its tasks where they are here."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from jevexp.backends.factory import make_reader
from jevexp.backends.rereading import AnswerReader, RequestForm
from jevexp.core.task import Task
from jevexp.datasets import FileState, LoadedDataset, file_state, load_dataset
from jevexp.errors import InputError
from jevexp.settings import Dataset
from jevexp.store import Manifest, RunStatus
from jevexp.store.directory import MANIFEST
from jevexp.untrusted.files import opened
from jevexp.verification.check import Check
from jevexp.verification.files import Tree

# A run that ended in one of these ways may have been cut off in the middle of a task.
_CUT_OFF = frozenset({RunStatus.RUNNING, RunStatus.CRASHED, RunStatus.INTERRUPTED})
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class VerificationContext:
    """`tasks` are the planned ones in order, null where the dataset is not here."""

    root: Path
    tree: Tree
    manifest: Manifest
    tasks: Sequence[Task] | None

    @property
    def resolved(self) -> Mapping[str, Any]:
        """The resolved configuration."""
        return self.manifest.config.resolved

    @cached_property
    def reader(self) -> AnswerReader | None:
        """How the provider's raw answers are read again; null where no such provider is known."""
        try:
            return make_reader(self.resolved["backend"], self.manifest.backend.description)
        except (ValueError, KeyError, TypeError):
            return None

    @property
    def request_form(self) -> RequestForm:
        """What the raw requests hold."""
        return self.reader.request_form if self.reader else RequestForm.PLAIN

    @property
    def foreign_amounts(self) -> bool:
        """Whether a person's own code chose what was reserved, and the bases of costs."""
        return self.reader is not None and self.reader.foreign_amounts

    @property
    def cut_off(self) -> bool:
        """Whether a task may have been under way when the run ended."""
        return self.manifest.status in _CUT_OFF

    @property
    def upstream(self) -> bool:
        """Whether the pinned harness ran the tasks."""
        return self.manifest.harness.name == "upstream"

    @cached_property
    def resumed(self) -> dict[str, Any]:
        """The manifest's section on the run that this one resumed; empty where it resumed none."""
        section: dict[str, Any] | None = self.manifest.model_dump(mode="json").get("resumed")
        return section or {}

    @cached_property
    def adopted(self) -> frozenset[str]:
        """The tasks whose records come from an earlier run."""
        return frozenset(self.resumed.get("adopted", ()))

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each planned task stands, by its id."""
        return {task.id: place for place, task in enumerate(self.tasks or ())}


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
        while part := file.read(_PIECE_BYTES):
            digest.update(part)
            size += len(part)
            if size > entry["bytes"]:
                return False
    return bool(digest.hexdigest() == entry["sha256"])
