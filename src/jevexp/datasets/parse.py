"""One line of a task file to a task, or to one line that says what is wrong with it."""

import difflib
import json
from typing import Any

from pydantic import BaseModel, ValidationError

from jevexp.core.json import dumps, loads
from jevexp.core.task import Question, Task

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


class BadLine(ValueError):
    """There is no usable task on the line; names the task and the field where they are known."""


def parse(raw: bytes, *, strict: bool) -> Task:
    """The task on one line of a task file.

    Args:
        raw: the line's bytes.
        strict: refuse fields that no task has, instead of ignoring them.

    Raises:
        BadLine: not UTF-8, not JSON, or not a task.
    """
    text = _text(raw.rstrip(b"\r\n"))
    document = _document(text)
    if not isinstance(document, dict):
        raise BadLine(f"expected an object, found {_shown(document)}")
    try:
        _check_once_and_whole(text)
        if strict:
            _check_known(document)
        return _task(document)
    except BadLine as error:
        name = document.get("id")
        if not isinstance(name, str):
            raise
        raise BadLine(f"task {name!r}: {error}") from error


def canonical_line(task: Task) -> bytes:
    """The task as it enters the dataset hash: UTF-8 JSON with sorted keys, and a newline."""
    return f"{dumps(task.canonical(), sort_keys=True)}\n".encode()


def _text(raw: bytes) -> str:
    if raw.startswith(_BYTE_ORDER_MARK):
        raise BadLine("begins with a byte order mark; save the file as UTF-8 without one")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        at = error.start
        raise BadLine(f"not UTF-8: byte 0x{raw[at]:02x} at position {at + 1}") from error


def _document(text: str) -> Any:
    try:
        return loads(text, lenient=True)
    except json.JSONDecodeError as error:
        raise BadLine(f"not JSON: {error.msg} at column {error.colno}") from error
    except ValueError as error:
        raise BadLine(f"not JSON: {error}") from error


def _check_once_and_whole(text: str) -> None:
    """Refuse a key that occurs twice, and half of a surrogate pair; the task's id is known now."""
    try:
        loads(text)
    except ValueError as error:
        raise BadLine(str(error)) from error


def _check_known(document: dict[str, Any]) -> None:
    _refuse_unknown(document, Task, prefix="")
    if isinstance(question := document.get("question"), dict):
        _refuse_unknown(question, Question, prefix="question.")


def _refuse_unknown(fields: dict[str, Any], model: type[BaseModel], *, prefix: str) -> None:
    known = list(model.model_fields)
    for key in fields:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
            hint = f"did you mean {prefix}{near[0]}?" if near else f"there are {', '.join(known)}"
            raise BadLine(
                f"{prefix}{key if key.isidentifier() else repr(key)}: no such field; {hint}"
            )


def _task(document: dict[str, Any]) -> Task:
    try:
        task = Task.model_validate(document)
        canonical_line(task)
    except ValidationError as error:
        raise BadLine(_explain(error)) from error
    except (ValueError, RecursionError) as error:
        # Pydantic writes criteria out, and goes less deep than the parser did.
        raise BadLine("question: nested too deep") from error
    return task


def _explain(error: ValidationError) -> str:
    first = error.errors()[0]
    if first["type"] == "value_error":
        # The task's own rules begin with the field.
        return first["msg"].removeprefix("Value error, ")
    place = ".".join(str(part) for part in first["loc"])
    reason = _REASONS.get(first["type"], first["msg"])
    if first["type"] in _WITHOUT_FINDING:
        return f"{place}: {reason}"
    for field, either in _UNIONS.items():
        if place.startswith(field):
            # Pydantic adds the type that it tried last.
            place, reason = field, either
    return f"{place}: {reason}, found {_shown(first['input'])}"


def _shown(value: Any) -> str:
    text = dumps(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
