"""What all checks look at: a run's files, its manifest, and its tasks where they are here."""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from jevexp.backends.protocol import make_reader
from jevexp.backends.rereading import AnswerReader, RequestForm
from jevexp.core.task import Task
from jevexp.datasets import FileState, LoadedDataset, file_state, load_dataset
from jevexp.errors import InputError
from jevexp.settings import Dataset
from jevexp.store import Manifest, RunStatus
from jevexp.store.checksums import CHECKSUMS, file_sha256, read_checksums
from jevexp.untrusted.files import KINDS, TooLong, numbered_lines, opened
from jevexp.verification.check import Check

# Far beyond any run: a task has one raw file, and a log of a server is the largest there is.
MOST_ENTRIES = 4_000_000
MOST_LEVELS = 16
# A file with holes takes no place on a disk and hours to read.
MOST_BYTES = 32 << 30
# Made from a finished run, and can be made again; a process that is killed while it replaces the
# page leaves the last one.
_MADE_LATER = re.compile(r"report\.html|plots/.*|\.report\.html\.[0-9a-f]{16}", re.DOTALL)
# A run that ended in one of these ways may have been cut off in the middle of a task.
_CUT_OFF = frozenset({RunStatus.RUNNING, RunStatus.CRASHED, RunStatus.INTERRUPTED})


@dataclass(frozen=True, slots=True)
class Tree:
    """`files` maps the names of regular files, relative to the directory, to their sizes in bytes.

    `links` names those that have a second name somewhere, and `faults` says of everything else
    what it is.
    """

    files: dict[str, int] = field(default_factory=dict)
    links: list[str] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)

    @property
    def made_later(self) -> set[str]:
        """The files that were made from the finished run, which no checksum covers."""
        return {name for name in self.files if _MADE_LATER.fullmatch(name)}

    def below(self, folder: str) -> list[str]:
        """The names of the files in a folder, without it."""
        start = f"{folder}/"
        return [name.removeprefix(start) for name in self.files if name.startswith(start)]


def read_tree(root: Path) -> Tree:
    """List a directory without following any link and without opening any file.

    Raises OSError: the directory itself cannot be listed.
    """
    tree = Tree()
    entries = size = 0
    folders = [("", 0)]
    while folders:
        folder, level = folders.pop()
        try:
            with os.scandir(root / folder) as listing:
                in_order = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            if not folder:
                raise
            tree.faults[folder] = f"cannot be listed: {error.strerror}"
            continue
        for entry in in_order:
            name = f"{folder}/{entry.name}" if folder else entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                # A run that is still at work replaced it a moment ago.
                continue
            entries += 1
            size += status.st_size if stat.S_ISREG(status.st_mode) else 0
            if entries > MOST_ENTRIES or size > MOST_BYTES:
                tree.faults[name] = "too much to be a run: nothing from here on was looked at"
                return tree
            if fault := _fault(name, status, level):
                tree.faults[name] = fault
            elif stat.S_ISDIR(status.st_mode):
                folders.append((name, level + 1))
            else:
                tree.files[name] = status.st_size
                if status.st_nlink > 1:
                    tree.links.append(name)
    return tree


def _fault(name: str, status: os.stat_result, level: int) -> str | None:
    kind = stat.S_IFMT(status.st_mode)
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
        return f"is {KINDS.get(kind, 'something else')}, where only files and folders may be"
    try:
        name.encode()
    except UnicodeEncodeError:
        return "has a name that is not UTF-8"
    if kind == stat.S_IFDIR and level >= MOST_LEVELS:
        return f"is a folder more than {MOST_LEVELS} levels deep"
    return None


def check_files(root: Path, tree: Tree) -> Check:
    """Hold every file against the checksums; without checksums only links and the like are found.

    Raises OSError: a file that was there a moment ago cannot be read.
    """
    check = Check("files", f"every file is listed once in {CHECKSUMS} and has that SHA-256")
    for path, fault in tree.faults.items():
        check.fail(path, fault)
    for path in tree.links:
        check.fail(path, "has a second name somewhere (a hard link), through which it can change")
    if CHECKSUMS not in tree.files:
        check.reason = f"there is no {CHECKSUMS}"
        return check
    listed = {CHECKSUMS}
    try:
        for line, name, sha256 in read_checksums(root):
            if name is None:
                check.fail(CHECKSUMS, "not a checksum and a name", line=line)
            elif name in listed:
                check.fail(CHECKSUMS, f"{name}: is listed twice", line=line)
            elif name not in tree.files:
                check.fail(CHECKSUMS, f"{name}: is missing", line=line)
            else:
                listed.add(name)
                check.count += 1
                with check.guarded(name):
                    if file_sha256(root / name) != sha256:
                        check.fail(name, f"its SHA-256 is not the one in {CHECKSUMS}:{line}")
    except TooLong as error:
        check.fail(CHECKSUMS, f"a line is {error}", line=error.line)
    for path in sorted(tree.files.keys() - listed - tree.made_later):
        check.fail(path, f"is not in {CHECKSUMS}")
    return check


@dataclass(frozen=True)
class VerificationContext:
    """`tasks` are the planned ones in order, null where the dataset is not here."""

    root: Path
    tree: Tree
    manifest: Manifest
    tasks: Sequence[Task] | None

    @property
    def resolved(self) -> dict[str, Any]:
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
    def foreign_amounts(self) -> bool:
        """Whether a person's own code chose what was reserved, and the bases of costs."""
        return self.reader is not None and self.reader.request_form is RequestForm.FOREIGN

    @property
    def cut_off(self) -> bool:
        """Whether a task may have been under way when the run ended."""
        return self.manifest.status in _CUT_OFF

    @cached_property
    def adopted(self) -> frozenset[str]:
        """The tasks whose records come from an earlier run."""
        return frozenset(self.manifest.resumed.adopted if self.manifest.resumed else ())

    def lines(
        self, name: str, check: Check, kind: str, *, most: int
    ) -> Iterator[tuple[int, bytes]]:
        """The first lines of a file with their numbers; what cannot be read fails the check."""
        try:
            with opened(self.root / name, follow_links=False) as file:
                for number, line in numbered_lines(file):
                    if number > most:
                        fault = f"more than {most} {kind}s; the others are not read"
                        check.fail(name, fault, line=number)
                        return
                    if not line.endswith(b"\n"):
                        if self.cut_off:
                            check.notes.append(f"{name}:{number}: torn, and read by nobody")
                        else:
                            check.fail(name, f"ends in the middle of a {kind}", line=number)
                        return
                    yield number, line
        except TooLong as error:
            check.fail(name, f"a {kind} is {error}", line=error.line)

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each planned task stands, by its id."""
        return {task.id: place for place, task in enumerate(self.tasks or ())}


def check_tasks(manifest: Manifest, copy: Path | None) -> tuple[Check, LoadedDataset | None]:
    """Find the tasks, in `copy` or where the run had them, and hold them against the manifest."""
    check = Check("tasks", "the dataset's files, number of tasks and order-independent hash")
    try:
        loaded = _load(manifest, copy, check)
    except (InputError, LookupError, TypeError, ValueError, RuntimeError, OSError):
        # What is in a file that is none of the run's is not for a stranger's manifest to ask.
        check.reason = "tasks are not here: name the task file that the run was put with --tasks"
        loaded = None
    if loaded is None:
        return check, None
    stored = manifest.dataset
    check.expect("dataset.dataset_hash", stored.dataset_hash, loaded.dataset_hash)
    check.expect("dataset.n_tasks", stored.n_tasks, len(loaded.tasks))
    check.expect("dataset.name", stored.name, loaded.name)
    check.expect("number of dataset.files", len(stored.files), len(loaded.files))
    for number, (entry, file) in enumerate(zip(stored.files, loaded.files, strict=False)):
        for name in ("sha256", "bytes", "tasks"):
            check.expect(f"dataset.files[{number}].{name}", entry.get(name), getattr(file, name))
    return check, None if check.failed else loaded


def _load(manifest: Manifest, copy: Path | None, check: Check) -> LoadedDataset | None:
    dataset = Dataset.of(manifest.config.resolved["dataset"], at="dataset")
    if copy is not None and dataset.source != "shipped":
        dataset = dataset.model_copy(update={"path": str(copy)})
    if dataset.path:
        path = Path(dataset.path).expanduser()
        # Before any line is parsed: whether these are the files that the run read.
        for entry in manifest.dataset.files:
            file = path / PurePosixPath(str(entry["name"])).name if path.is_dir() else path
            same_size = file.stat().st_size == entry["bytes"]
            if not same_size or file_sha256(file, follow_links=True) != entry["sha256"]:
                way_out = f"{file} is not the file that the run read; name it with --tasks"
                check.reason = f"tasks are not here: {way_out}"
                return None
    elif dataset.source == "pinned" and {*map(file_state, dataset.files)} != {FileState.CACHED}:
        way_out = "`jevexp data pull` downloads pinned ones; --tasks names a copy of them"
        check.reason = f"tasks are not here: {way_out}"
        return None
    return load_dataset(dataset)
