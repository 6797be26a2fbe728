"""Task files: JSON Lines in UTF-8, one task a line, read and checked one line at a time."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jevexp.core.task import Task
from jevexp.datasets.parse import BadLine, canonical_line, parse
from jevexp.datasets.tasks import Tasks
from jevexp.errors import InputError
from jevexp.untrusted.files import TooLong, numbered_lines, opened


@dataclass(frozen=True, slots=True)
class TaskFile:
    """What one file held: a line for each task, in order, and what was read.

    `canonical` are the same tasks as they enter the dataset hash; `sha256` and `bytes` are of the
    whole file.
    """

    lines: tuple[bytes, ...]
    canonical: tuple[bytes, ...]
    sha256: str
    bytes: int


def load_tasks(path: Path | str, *, strict: bool = True) -> list[Task]:
    """The tasks of a file, in the file's order.

    Args:
        path: a JSON Lines file; see the reference page on task files.
        strict: refuse fields that no task has, instead of ignoring them.

    Raises:
        InputError: naming the file, the line, the task and the field.
    """
    return list(Tasks(read_file(Path(path), strict=strict, places={}).lines))


def dataset_hash(tasks: Iterable[Task]) -> str:
    """SHA-256 over the sorted canonical records: the same whatever the tasks' order."""
    return hash_of(map(canonical_line, tasks))


def hash_of(canonical: Iterable[bytes]) -> str:
    """SHA-256 over canonical records, sorted."""
    digest = hashlib.sha256()
    for line in sorted(canonical):
        digest.update(line)
    return digest.hexdigest()


def read_file(path: Path, *, strict: bool, places: dict[str, str]) -> TaskFile:
    """Read and check one file of a dataset.

    `places` says where each task id was seen; files of one dataset share it, since an id occurs
    once in all of them.

    Raises:
        InputError: naming the file, the line, the task and the field.
    """
    digest = hashlib.sha256()
    size = 0
    lines = []
    canonical = []
    try:
        with opened(path) as stream:
            for number, raw in numbered_lines(stream):
                digest.update(raw)
                size += len(raw)
                if raw.strip():
                    task = _task(raw, f"{path}:{number}", strict=strict, places=places)
                    lines.append(raw)
                    canonical.append(canonical_line(task))
    except TooLong as error:
        raise InputError(f"{path}:{error.line}: {error}; one task a line") from error
    except OSError as error:
        raise InputError(f"{path}: cannot read the task file: {error.strerror or error}") from error
    if not lines:
        raise InputError(f"{path}: holds no tasks; a task file has one JSON object a line")
    return TaskFile(tuple(lines), tuple(canonical), digest.hexdigest(), size)


def _task(raw: bytes, place: str, *, strict: bool, places: dict[str, str]) -> Task:
    try:
        task = parse(raw, strict=strict)
        if first := places.get(task.id):
            raise BadLine(f"task {task.id!r}: id: also at {first}")
    except BadLine as error:
        raise InputError(f"{place}: {error}") from error
    places[task.id] = place
    return task
