"""An earlier run's directory as a source of answers, if it is still as the run left it."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from jevexp.backends.rereading import decision_of
from jevexp.core.decision import Decision
from jevexp.core.json import dumps, loads
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.datasets import load_dataset
from jevexp.errors import InputError
from jevexp.settings import Dataset
from jevexp.untrusted.files import TooLong, numbered_lines, opened, read_document

MANIFEST = "manifest.json"
RESULTS = "results.jsonl"
CHECKSUMS = "checksums.sha256"


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


def read_run(directory: Path) -> Source:
    """Verify a run's directory and read what was asked in it and answered.

    Raises:
        InputError: it is no finished run, or not as the run left it.
    """
    if not directory.is_dir():
        raise InputError(f"backend.run: {directory}: no such folder; give a run's directory")
    checksums_sha256, covered = verify_checksums(directory)
    run = _Run(directory, covered)
    decisions: dict[str, list[Decision]] = {}
    for record in run.records():
        raw = run.raw(record)
        key = _key_in(raw["request"]) or run.asked_by_task(record.task_id)
        decisions.setdefault(key, []).append(decision_of(record, raw["response"]))
    return Source(decisions, run.description() | {"checksums_sha256": checksums_sha256})


class _Run:
    """A verified run's files, read one by one."""

    def __init__(self, directory: Path, covered: frozenset[str]) -> None:
        self._directory = directory
        self._covered = covered
        self._manifest = self._json(MANIFEST)

    def description(self) -> dict[str, Any]:
        try:
            fingerprint = self._manifest["fingerprint"]
            return {
                "run": self._manifest["run"],
                "status": self._manifest["status"],
                "backend": self._manifest["backend"]["name"],
                "dataset_hash": self._manifest["dataset"]["dataset_hash"],
                "fingerprint": fingerprint and fingerprint["value"],
            }
        except (KeyError, TypeError) as error:
            raise self._unusable(MANIFEST, "not a manifest") from error

    def records(self) -> list[Record]:
        self._check_covered(RESULTS)
        records = []
        with opened(self._directory / RESULTS, follow_links=False) as file:
            try:
                for number, line in numbered_lines(file):
                    records.append(self._record(line, number))
            except TooLong as error:
                raise self._unusable(f"{RESULTS}:{error.line}", "not a record") from error
        return records

    def _record(self, line: bytes, number: int) -> Record:
        try:
            return Record.model_validate(loads(line))
        except ValueError as error:
            raise self._unusable(f"{RESULTS}:{number}", "not a record") from error

    def raw(self, record: Record) -> dict[str, Any]:
        """The raw evidence behind a record, which has to be the one that the record names."""
        name = f"raw/{hashlib.sha256(record.task_id.encode()).hexdigest()}.json"
        if hashlib.sha256(self._bytes(name)).hexdigest() != record.raw_sha256:
            raise self._unusable(name, f"not the raw evidence of task {record.task_id!r}")
        raw = self._json(name)
        if not {"request", "response"} <= raw.keys():
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
            fields = self._manifest["config"]["resolved"]["dataset"]
            expected = self._manifest["dataset"]["dataset_hash"]
        except (KeyError, TypeError) as error:
            raise self._unusable(MANIFEST, "not a manifest") from error
        dataset = load_dataset(Dataset.of(fields, at="dataset"), may_download=False)
        if dataset.dataset_hash != expected:
            raise self._unusable(MANIFEST, "its tasks have changed since the run")
        return {task.id: task for task in dataset.tasks}

    def _json(self, name: str) -> dict[str, Any]:
        try:
            value = loads(self._bytes(name))
        except ValueError as error:
            raise self._unusable(name, f"not JSON: {error}") from error
        if not isinstance(value, dict):
            raise self._unusable(name, "expected an object")
        return value

    def _bytes(self, name: str) -> bytes:
        self._check_covered(name)
        try:
            return read_document(self._directory / name, follow_links=False)
        except TooLong as error:
            raise self._unusable(name, str(error)) from error

    def _check_covered(self, name: str) -> None:
        if name not in self._covered:
            raise self._unusable(name, "the run's checksums do not name it")

    def _unusable(self, name: str, reason: str) -> InputError:
        return InputError(f"backend.run: {self._directory / name}: {reason}")


def _key_in(request: Any) -> str | None:
    """What was asked, where the raw request holds a whole System One body."""
    if not isinstance(request, Mapping) or "state" not in request:
        return None
    questions = request.get("questions")
    question = questions.get("decision") if isinstance(questions, Mapping) else None
    return question_key(request["state"], question) if isinstance(question, Mapping) else None


def verify_checksums(directory: Path, *, at: str = "backend.run") -> tuple[str, frozenset[str]]:
    """Hash every file that the run's checksums name.

    Args:
        directory: the run's directory.
        at: the field that named it, for messages.

    Returns:
        The SHA-256 of the checksums' file itself, and the names that it covers.

    Raises:
        InputError: there are no checksums, or a file is not the one they were made of.
    """
    try:
        data = read_document(directory / CHECKSUMS, follow_links=False)
    except (OSError, TooLong) as error:
        raise _unreadable(
            at,
            directory / CHECKSUMS,
            error,
            "a run that was killed has none, and cannot be replayed",
        ) from error
    covered = set()
    for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
        digest, _, name = line.partition("  ")
        path = PurePosixPath(name)
        if len(digest) != 64 or not name or path.is_absolute() or ".." in path.parts:
            raise InputError(f"{at}: {directory / CHECKSUMS}:{number}: not a checksum")
        try:
            with opened(directory / path, follow_links=False) as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise _unreadable(at, directory / path, error, "the run left it there") from error
        if found != digest:
            raise InputError(
                f"{at}: {directory / path}: was changed after the run: its SHA-256 is not "
                f"the one in {CHECKSUMS}"
            )
        covered.add(name)
    return hashlib.sha256(data).hexdigest(), frozenset(covered)


def _unreadable(at: str, path: Path, error: OSError | TooLong, remark: str) -> InputError:
    reason = error.strerror if isinstance(error, OSError) else error
    return InputError(f"{at}: {path}: {reason}; {remark}")
