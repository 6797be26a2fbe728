"""The files that hold answers: records as lines, records before their turn, pending answers."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from jevexp.core.json import dumps, loads
from jevexp.core.record import Record
from jevexp.untrusted.files import TooLong, opened, read_document, whole_lines
from jevexp.untrusted.writing import (
    create,
    make_folder,
    remove,
    remove_folder,
    sync_directory,
    write_all,
    write_durably,
)

PENDING = "pending"


def raw_name(task_id: str) -> str:
    """The name of a task's raw evidence, which an id with any characters in it can have."""
    return f"{hashlib.sha256(task_id.encode()).hexdigest()}.json"


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


class EarlyRecords:
    """A file beside the results, made by the first record that comes before its turn.

    Requests that are under way at once are answered in any order, and the results are in the
    dataset's order. Each record in this file is written into the results as well once the ones
    before it are there; then the file goes. Only a process that is killed leaves it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: FileIO | None = None

    def append(self, records: Sequence[Record]) -> None:
        """Append records and force them to disk."""
        if self._file is None:
            self._file = create(self._path)
            sync_directory(self._path.parent)
        write_durably(self._file, lines(records))

    def drop(self) -> None:
        """Remove the file; harmless where there is none."""
        if self._file is not None:
            self.close()
            remove(self._path)
            sync_directory(self._path.parent)

    def close(self) -> None:
        """Leave the file as it is."""
        if self._file is not None:
            self._file.close()
            self._file = None


class Held(NamedTuple):
    """An answer as it was held: the record that it was to become, and its raw evidence."""

    record: Record
    raw: str


class Pending:
    """The folder of answers between their arrival and their record, one file a task.

    A file is written as soon as an answer is there, before its raw evidence, and removed once its
    record is durable. It is not forced to disk: it outlives a process that is killed, which is what
    it is for, and not a machine that loses its power.
    """

    def __init__(self, directory: Path) -> None:
        self._folder = directory / PENDING

    def create(self) -> None:
        """Make the folder.

        Raises:
            FileExistsError: it is there already.
        """
        make_folder(self._folder)

    def hold(self, record: Record, raw: str) -> None:
        """Keep an answer until `release`."""
        held = dumps({"record": record.line(), "raw": raw}).encode()
        path = self._file(record.task_id)
        # A task that is asked again has another answer.
        remove(path, missing_ok=True)
        with create(path) as file:
            write_all(file, held)

    def release(self, records: Iterable[Record]) -> None:
        """Forget answers whose records are durable; harmless where none was held."""
        for record in records:
            remove(self._file(record.task_id), missing_ok=True)

    def held(self) -> Iterator[Held]:
        """The answers that were held when the process died, in no order.

        A file that was cut off in the middle is none: its answer never had any evidence. Neither is
        one whose record belongs to other evidence.
        """
        for path in sorted(self._folder.glob("*.json")):
            try:
                fields = loads(read_document(path, follow_links=False))
                held = Held(Record.model_validate(fields["record"]), str(fields["raw"]))
            except (ValueError, KeyError, TypeError):
                continue
            if hashlib.sha256(held.raw.encode()).hexdigest() == held.record.raw_sha256:
                yield held

    def close(self) -> None:
        """Remove the folder where nothing is held."""
        with suppress(OSError):
            remove_folder(self._folder)

    def _file(self, task_id: str) -> Path:
        return self._folder / raw_name(task_id)
