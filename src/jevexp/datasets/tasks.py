"""Task files: JSON Lines in UTF-8, one task a line, read and checked one line at a time."""

import difflib
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from pydantic import BaseModel, ValidationError

from jevexp.core.json import dumps, how_to_split, loads
from jevexp.core.task import Question, Task
from jevexp.errors import InputError
from jevexp.untrusted.files import TooLong, numbered_lines, opened, read_document

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_REASONS = {
    "missing": "missing",
    "string_type": "expected text",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "tuple_type": "expected a list",
    "dict_type": "expected an object",
    "model_type": "expected an object",
    "enum": 'expected "noul", "choice" or "score"',
    "literal_error": 'expected "public" or "private"',
}
# Fields of several types: what the first type misses would be half of the reason.
_UNIONS = {
    "expected": "takes a label, the number of a level or null",
    "question.criteria": "expected an object, a list or null",
}
_WITHOUT_FINDING = ("missing", "string_too_short", "too_short")


class Tasks(Sequence[Task]):
    """Checked tasks in their order, each made again from its line whenever it is looked at.

    A task as objects takes about eight times the memory of its line, and most of a run looks at one
    task at a time; making one again takes less than a tenth of a millisecond.
    """

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines

    @overload
    def __getitem__(self, index: int) -> Task: ...

    @overload
    def __getitem__(self, index: slice) -> "Tasks": ...

    def __getitem__(self, index: int | slice) -> "Task | Tasks":
        if isinstance(index, slice):
            return Tasks(self._lines[index])
        return Task.model_validate(loads(self._lines[index]))

    def __len__(self) -> int:
        return len(self._lines)


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
    """The tasks of a JSON Lines file, in its order; `strict` refuses fields that no task has.

    Raises InputError: naming the file, the line, the task and the field.
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

    Raises InputError: naming the file, the line, the task and the field.
    """
    digest = hashlib.sha256()
    size = 0
    lines: list[bytes] = []
    canonical: list[bytes] = []
    try:
        with opened(path) as stream:
            for number, raw in numbered_lines(stream):
                digest.update(raw)
                size += len(raw)
                if not raw.strip():
                    continue
                try:
                    task_id, canonical_task = _parse(raw, strict=strict)
                    if first := places.get(task_id):
                        raise _BadLine(f"task {task_id!r}: id: also at {first}")
                except _BadLine as error:
                    if not lines and (advice := lines_advice(path)):
                        raise InputError(f"{path}: {advice}") from error
                    raise InputError(f"{path}:{number}: {error}") from error
                places[task_id] = f"{path}:{number}"
                lines.append(raw)
                canonical.append(canonical_task)
    except TooLong as error:
        raise InputError(f"{path}:{error.line}: {error}; one task a line") from error
    except OSError as error:
        raise InputError(f"{path}: cannot read the task file: {error.strerror or error}") from error
    if not lines:
        raise InputError(f"{path}: holds no tasks; a task file has one JSON object a line")
    return TaskFile(tuple(lines), tuple(canonical), digest.hexdigest(), size)


def lines_advice(path: Path) -> str | None:
    """What is wrong with a file that is one JSON document, and how to make JSON Lines of it."""
    try:
        return how_to_split(read_document(path), path)
    except (OSError, TooLong):
        return None


class _BadLine(ValueError):
    """There is no usable task on the line; names the task and the field where they are known."""


def _parse(raw: bytes, *, strict: bool) -> tuple[str, bytes]:
    """Id and canonical line of the task on one line of a task file; raises _BadLine."""
    if raw.startswith(_BYTE_ORDER_MARK):
        raise _BadLine("begins with a byte order mark; save the file as UTF-8 without one")
    try:
        text = raw.rstrip(b"\r\n").decode()
        document = loads(text, lenient=True)
    except UnicodeDecodeError as error:
        place = error.start
        raise _BadLine(f"not UTF-8: byte 0x{raw[place]:02x} at position {place + 1}") from error
    except json.JSONDecodeError as error:
        raise _BadLine(f"not JSON: {error.msg} at column {error.colno}") from error
    except ValueError as error:
        raise _BadLine(f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise _BadLine(f"expected an object, found {_shown(document)}")
    name = document.get("id")
    task_name = f"task {name!r}: " if isinstance(name, str) else ""
    try:
        # A key that occurs twice, and half of a surrogate pair: now they can be told with the id.
        loads(text)
        if strict:
            _refuse_unknown(document, Task, prefix="")
            if isinstance(question := document.get("question"), dict):
                _refuse_unknown(question, Question, prefix="question.")
    except ValueError as error:
        raise _BadLine(f"{task_name}{error}") from error
    try:
        task = Task.model_validate(document)
        return task.id, canonical_line(task)
    except ValidationError as error:
        raise _BadLine(f"{task_name}{_explain(error)}") from error
    except (ValueError, RecursionError) as error:
        # Pydantic writes criteria out, and goes less deep than the parser did.
        raise _BadLine(f"{task_name}question: nested too deep") from error


def canonical_line(task: Task) -> bytes:
    """The task as it enters the dataset hash: UTF-8 JSON with sorted keys, and a newline."""
    return f"{dumps(task.canonical(), sort_keys=True)}\n".encode()


def _refuse_unknown(fields: dict[str, Any], model: type[BaseModel], *, prefix: str) -> None:
    known = list(model.model_fields)
    for key in fields:
        if key not in known:
            names = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
            hint = f"did you mean {prefix}{names[0]}?" if names else f"there are {', '.join(known)}"
            raise _BadLine(
                f"{prefix}{key if key.isidentifier() else repr(key)}: no such field; {hint}"
            )


def _explain(error: ValidationError) -> str:
    first = error.errors()[0]
    if first["type"] == "value_error":
        # The task's own rules begin with the field.
        return first["msg"].removeprefix("Value error, ")
    place = ".".join(str(part) for part in first["loc"])
    reason = _REASONS.get(first["type"], first["msg"])
    if first["type"] in _WITHOUT_FINDING:
        return f"{place}: {reason}"
    for field, types in _UNIONS.items():
        if place.startswith(field):
            # Pydantic adds the type that it tried last.
            place, reason = field, types
    return f"{place}: {reason}, found {_shown(first['input'])}"


def _shown(value: Any) -> str:
    text = dumps(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
