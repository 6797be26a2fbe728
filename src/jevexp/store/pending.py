"""Answers that have no record yet, kept so that a killed process loses none."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from jevexp.core.json import dumps, loads
from jevexp.core.record import Record
from jevexp.untrusted.files import read_document
from jevexp.untrusted.writing import create, make_folder, remove, remove_folder, write_all

PENDING = "pending"


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
        return self._folder / f"{hashlib.sha256(task_id.encode()).hexdigest()}.json"
