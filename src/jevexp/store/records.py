"""Records as lines of a file, written and read again."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from jevexp.core.json import dumps, loads
from jevexp.core.record import Record
from jevexp.untrusted.files import TooLong, opened, whole_lines


def lines(records: Sequence[Record]) -> bytes:
    """Records as they are written, a line each."""
    return b"".join(dumps(record.line()).encode() + b"\n" for record in records)


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file, up to a last line without its end, which a killed process leaves.

    Raises:
        ValueError: naming the line that is not a record.
    """
    with opened(path, follow_links=False) as file:
        try:
            for number, line in whole_lines(file):
                yield _record(line, f"{path}:{number}")
        except TooLong as error:
            raise ValueError(f"{path}:{error.line}: not a record: {error}") from error


def _record(line: bytes, place: str) -> Record:
    try:
        return Record.model_validate(loads(line))
    except ValueError as error:
        raise ValueError(f"{place}: not a record: {reason(error)}") from error


def reason(error: ValueError) -> str:
    """One line: the first field that is wrong, without its value, which may be long."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else first["msg"]
