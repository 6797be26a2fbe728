"""Records as the lines of a file, and answers of an earlier run that a new one takes over."""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from jevexp.core.identity import Fingerprint
from jevexp.core.json import dumps, loads
from jevexp.core.record import Record
from jevexp.errors import InputError
from jevexp.store.manifest import Program, Resumed
from jevexp.untrusted.files import opened, read_document, whole_lines

_MOST_SHOWN = 80


def raw_name(task_id: str) -> str:
    """The name of a task's raw evidence, which an id with any characters in it can have."""
    return f"{hashlib.sha256(task_id.encode()).hexdigest()}.json"


def lines(records: Sequence[Record]) -> bytes:
    """Records as they are written, a line each."""
    return b"".join(dumps(record.line()).encode() + b"\n" for record in records)


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file, up to a last line without its end, which a killed process leaves.

    Raises ValueError: naming the line that is not a record.
    """
    number = 1
    with opened(path, follow_links=False) as file:
        try:
            for _, line in whole_lines(file):
                yield Record.model_validate(loads(line))
                number += 1
        except ValueError as error:
            raise ValueError(f"{path}:{number}: not a record: {reason(error)}") from error


def reason(error: ValueError) -> str:
    """One line: the first field that is wrong, without its value, which may be long."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else first["msg"]


class Held(NamedTuple):
    """An answer as it was held: the record that it was to become, and its raw evidence."""

    record: Record
    raw: str


@dataclass(frozen=True, slots=True)
class AdoptedAnswer:
    """A record and its raw evidence: the text, or the earlier run's file where that is null."""

    record: Record
    raw_file: Path
    raw: str | None = None

    def raw_bytes(self) -> bytes:
        """The raw evidence; raises InputError: it is not the evidence that the record names."""
        if self.raw is None:
            data = read_document(self.raw_file, follow_links=False)
        else:
            data = self.raw.encode()
        if hashlib.sha256(data).hexdigest() != self.record.raw_sha256:
            raise InputError(
                f"resume: {self.raw_file}: not the raw evidence of task {self.record.task_id!r}"
            )
        return data


@dataclass(frozen=True, slots=True)
class Adoption:
    """What a run takes over: the manifest's section, the answers, what they were measured with.

    `programs` are the sessions that gave them, oldest first.
    """

    entry: Resumed
    answers: tuple[AdoptedAnswer, ...]
    fingerprint: Fingerprint | None
    programs: tuple[Program, ...] = ()

    @property
    def models(self) -> list[str]:
        """The models that gave the answers."""
        return sorted({answer.record.model for answer in self.answers})

    def difference(self, now: Fingerprint) -> str | None:
        """What is measured otherwise now, in one line; None where nothing was taken over."""
        then = self.fingerprint
        if then is None or (then.version, then.value) == (now.version, now.value):
            return None
        inputs = "".join(
            f"; {name}: {_shown(then.inputs.get(name))} then, {_shown(value)} now"
            for name, value in now.inputs.items()
            if then.inputs.get(name) != value
        )
        return f"fingerprint: {then.value} then, {now.value} now{inputs}"


def _shown(value: Any) -> str:
    text = dumps(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


class AdoptedRecords:
    """Gives adopted records out, each when the results have come to its place.

    Args:
        order: the ids of all planned tasks, in the dataset's order.
        records: the adopted ones by task id.
    """

    def __init__(self, order: Sequence[str], records: Mapping[str, Record]) -> None:
        self._order = order
        self._records = records
        self._place = 0

    @property
    def waiting(self) -> bool:
        """Whether a record has not been given out yet."""
        return any(task_id in self._records for task_id in self._order[self._place :])

    def until(self, stops: Collection[str]) -> list[Record]:
        """The records between the last place and the first one of the tasks `stops`."""
        reached: list[Record] = []
        while self._place < len(self._order) and (task_id := self._order[self._place]) not in stops:
            if task_id in self._records:
                reached.append(self._records[task_id])
            self._place += 1
        return reached
