"""Answers of an earlier run that a new one takes over, and their places among its own."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jevexp.core.identity import Fingerprint
from jevexp.core.json import dumps
from jevexp.core.record import Record
from jevexp.errors import InputError
from jevexp.store.manifest import Program, Resumed
from jevexp.untrusted.files import read_document

_MOST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class AdoptedAnswer:
    """A record and its raw evidence: the text, or the earlier run's file where that is null."""

    record: Record
    raw_file: Path
    raw: str | None = None

    def raw_bytes(self) -> bytes:
        """The raw evidence.

        Raises:
            InputError: it is not the evidence that the record names.
        """
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
        names = [name for name in now.inputs if then.inputs.get(name) != now.inputs[name]]
        inputs = "".join(
            f"; {name}: {_shown(then.inputs.get(name))} then, {_shown(now.inputs[name])} now"
            for name in names
        )
        return f"fingerprint: {then.value} then, {now.value} now{inputs}"


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

    def leading(self) -> list[Record]:
        """The records before the first task that has to be asked."""
        return self._until(set(self._order) - self._records.keys())

    def before(self, task_id: str) -> list[Record]:
        """The records between the last place and a task's own."""
        return self._until({task_id})

    def rest(self) -> list[Record]:
        """All records that have not been given out yet."""
        return self._until(())

    def _until(self, stops: Collection[str]) -> list[Record]:
        given = []
        while self._place < len(self._order) and (at := self._order[self._place]) not in stops:
            if at in self._records:
                given.append(self._records[at])
            self._place += 1
        return given


def _shown(value: Any) -> str:
    text = dumps(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
