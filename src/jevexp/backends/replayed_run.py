"""An earlier run's directory as a source of answers, if it is still as the run left it."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jevexp.backends.rereading import decision_of
from jevexp.core.decision import Decision
from jevexp.core.json import dumps, loads
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.datasets import dataset_of
from jevexp.errors import InputError
from jevexp.store import RunDirectory
from jevexp.store.checksums import CHECKSUMS, file_sha256, read_checksums
from jevexp.store.directory import MANIFEST, RAW, RESULTS
from jevexp.store.records import raw_name
from jevexp.untrusted.files import TooLong, read_document


@dataclass(frozen=True, slots=True)
class Source:
    """Earlier answers.

    Attributes:
        decisions: by `question_key`, in the order in which they were given.
        description: which source it is, as JSON; goes into the manifest.
    """

    decisions: Mapping[str, Sequence[Decision]]
    description: dict[str, Any]

    @property
    def model(self) -> str | None:
        """The model that gave all the answers; None where there were several, or none."""
        given = (decision for same in self.decisions.values() for decision in same)
        models = {decision.model for decision in given if decision.ok}
        return models.pop() if len(models) == 1 else None


def question_key(state: Any, question: Mapping[str, Any]) -> str:
    """The key of a question about a state, both as a provider receives them.

    The order of the options is part of the question, since a model may answer by it.
    """
    return dumps([state, question])


def read_run(path: Path) -> Source:
    """Verify a run's directory and read what was asked in it and answered.

    Raises:
        InputError: it is no finished run, or not as the run left it.
    """
    if not path.is_dir():
        raise InputError(f"backend.run: {path}: no such folder; give a run's directory")
    run = _VerifiedRun(path, _verify_checksums(path))
    decisions: dict[str, list[Decision]] = {}
    for record in run.records():
        raw = run.raw(record)
        key = _key_in(raw["request"]) or run.asked_by_task(record.task_id)
        decisions.setdefault(key, []).append(decision_of(record, raw["response"]))
    return Source(decisions, run.description())


class _VerifiedRun:
    """A run whose files are those that its checksums name."""

    def __init__(self, path: Path, covered: frozenset[str]) -> None:
        self._path = path
        self._covered = covered
        self._check_covered(MANIFEST)
        self._directory = RunDirectory(path)
        try:
            self._manifest = self._directory.read_manifest()
        except InputError as error:
            raise InputError(f"backend.run: {error}") from error

    def description(self) -> dict[str, Any]:
        fingerprint = self._manifest.fingerprint
        return {
            "run": self._manifest.run,
            "status": self._manifest.status.value,
            "backend": self._manifest.backend.name,
            "dataset_hash": self._manifest.dataset.dataset_hash,
            "fingerprint": fingerprint and fingerprint.value,
            "checksums_sha256": file_sha256(self._path / CHECKSUMS),
        }

    def records(self) -> list[Record]:
        self._check_covered(RESULTS)
        try:
            return list(self._directory.records())
        except ValueError as error:
            raise InputError(f"backend.run: {error}") from error

    def raw(self, record: Record) -> dict[str, Any]:
        """The raw evidence behind a record, which has to be the one that the record names."""
        name = f"{RAW}/{raw_name(record.task_id)}"
        self._check_covered(name)
        try:
            data = read_document(self._path / name, follow_links=False)
            raw = loads(data)
        except TooLong as error:
            raise self._unusable(name, str(error)) from error
        except ValueError as error:
            raise self._unusable(name, f"not JSON: {error}") from error
        if hashlib.sha256(data).hexdigest() != record.raw_sha256:
            raise self._unusable(name, f"not the raw evidence of task {record.task_id!r}")
        if not isinstance(raw, dict) or not {"request", "response"} <= raw.keys():
            raise self._unusable(name, "not raw evidence")
        return raw

    def asked_by_task(self, task_id: str) -> str:
        """What was asked where the evidence does not hold it, as after some failures."""
        task = self._tasks.get(task_id)
        if task is None:
            raise self._unusable(RESULTS, f"its dataset has no task {task_id!r}")
        return question_key(task.state, task.question.wire())

    @cached_property
    def _tasks(self) -> dict[str, Task]:
        """The tasks that the run was put, found again by its manifest."""
        try:
            return {task.id: task for task in dataset_of(self._manifest).tasks}
        except InputError as error:
            raise self._unusable(MANIFEST, str(error)) from error

    def _check_covered(self, name: str) -> None:
        if name not in self._covered:
            raise self._unusable(name, "the run's checksums do not name it")

    def _unusable(self, name: str, reason: str) -> InputError:
        return InputError(f"backend.run: {self._path / name}: {reason}")


def _key_in(request: Any) -> str | None:
    """What was asked, where the raw request holds a whole System One body."""
    if not isinstance(request, Mapping) or "state" not in request:
        return None
    questions = request.get("questions")
    question = questions.get("decision") if isinstance(questions, Mapping) else None
    return question_key(request["state"], question) if isinstance(question, Mapping) else None


def _verify_checksums(path: Path) -> frozenset[str]:
    """Hash every file that a run's checksums name; the names.

    Raises:
        InputError: there are no checksums, or a file is not the one they were made of.
    """
    covered = set()
    at = path / CHECKSUMS
    try:
        for line, name, sha256 in read_checksums(path):
            if name is None:
                raise InputError(f"backend.run: {at}:{line}: not a checksum")
            try:
                same = file_sha256(path / name) == sha256
            except OSError as error:
                raise InputError(
                    f"backend.run: {path / name}: {error.strerror}; the run left it there"
                ) from error
            if not same:
                raise InputError(
                    f"backend.run: {path / name}: was changed after the run: its SHA-256 is not "
                    f"the one in {CHECKSUMS}"
                )
            covered.add(name)
    except TooLong as error:
        raise InputError(f"backend.run: {at}:{error.line}: {error}") from error
    except OSError as error:
        raise InputError(
            f"backend.run: {at}: {error.strerror}; a run that was killed has none, and cannot be "
            "replayed"
        ) from error
    return frozenset(covered)
