"""An earlier run's directory as a source of answers."""

import hashlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from jevexp.backends.replay.checksums import verify
from jevexp.backends.replay.source import Source, asked
from jevexp.core.decision import Decision, ProbsSource
from jevexp.core.json import loads
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.datasets import load_dataset
from jevexp.errors import InputError
from jevexp.settings import Dataset
from jevexp.untrusted.files import TooLong, numbered_lines, opened, read_document

MANIFEST = "manifest.json"
RESULTS = "results.jsonl"
# Stands in for a label that was outside the label set and is kept nowhere.
FOREIGN_LABEL = "\x00"


def read_run(directory: Path) -> Source:
    """Verify a run's directory and read what was asked in it and answered.

    Raises:
        InputError: it is no finished run, or not as the run left it.
    """
    if not directory.is_dir():
        raise InputError(f"backend.run: {directory}: no such folder; give a run's directory")
    checksums_sha256, covered = verify(directory)
    run = _Run(directory, covered)
    decisions: dict[str, list[Decision]] = {}
    for record in run.records():
        raw = run.raw(record)
        key = _asked_in(raw["request"]) or run.asked_by_task(record.task_id)
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
        return asked(task.state, task.question.wire())

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


def _asked_in(request: Any) -> str | None:
    """What was asked, where the raw request holds a whole System One body."""
    if not isinstance(request, Mapping) or "state" not in request:
        return None
    questions = request.get("questions")
    question = questions.get("decision") if isinstance(questions, Mapping) else None
    return asked(request["state"], question) if isinstance(question, Mapping) else None


def decision_of(record: Record, response: Any) -> Decision:
    """The provider's answer that became a record, as far as the record tells."""
    return Decision(
        ok=record.ok,
        model=record.model,
        probs=_probs(record),
        label=_label(record),
        probs_source=ProbsSource(record.probs_source),
        error=record.error,
        status_code=record.status_code,
        usage=record.usage,
        response=response,
        runtime=record.runtime,
    )


def _probs(record: Record) -> dict[str, Any] | None:
    """The distribution as it was returned; a number that JSON has no word for is one again."""
    if record.probs_as_returned is None:
        return None
    return {
        label: float(p)
        if record.schema_error == f"prob[{label!r}] out of [0,1]: {p}" and p in _NO_JSON
        else p
        for label, p in record.probs_as_returned.items()
    }


_NO_JSON = ("nan", "inf", "-inf")


def _label(record: Record) -> str | None:
    """The label of an answer without a distribution."""
    if record.probs_source != ProbsSource.LABEL_ONLY or record.schema_error == "abstained":
        return None
    return record.predicted if record.valid else FOREIGN_LABEL
