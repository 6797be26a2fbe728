"""Earlier answers, found by what is asked: nothing is asked again, nothing is paid."""

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from jevexp.backends.rereading import AnswerReader, decision_of, read_probabilities
from jevexp.core.decision import Decision, ProbsSource, Request
from jevexp.core.json import dumps, loads
from jevexp.core.record import Record
from jevexp.core.task import Question, Task
from jevexp.datasets import dataset_of
from jevexp.datasets.tasks import lines_advice
from jevexp.errors import InputError
from jevexp.settings import ModelIdentity, ReplayBackend
from jevexp.store import RunDirectory
from jevexp.store.checksums import CHECKSUMS, file_sha256, read_checksums
from jevexp.store.directory import MANIFEST, RAW, RESULTS
from jevexp.store.records import raw_name
from jevexp.untrusted.files import TooLong, numbered_lines, opened, read_document

COST_BASIS = "replayed_no_new_cost"


@dataclass(frozen=True, slots=True)
class Source:
    """Earlier answers by `question_key`, in their order, and which source it is, as JSON."""

    decisions: Mapping[str, Sequence[Decision]]
    description: dict[str, Any]

    @property
    def model(self) -> str | None:
        """The model that gave all the answers; None where there were several, or none."""
        decisions = itertools.chain.from_iterable(self.decisions.values())
        models = {decision.model for decision in decisions if decision.ok}
        return models.pop() if len(models) == 1 else None


def make(settings: ReplayBackend, model: ModelIdentity, tasks: Iterable[Task]) -> "Replay":
    """The provider, with its source read; raises InputError where that is not as it was left."""
    del model, tasks
    return Replay(settings)


def reader(settings: ReplayBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads distributions where a file of answers, or jevexp itself, put them."""
    del description
    field = "probs" if settings.answers is not None else "probabilities"
    return AnswerReader(lambda _request, raw: read_probabilities(raw, field), cost_basis=COST_BASIS)


class Replay:
    """Answers and failures of an earlier run, or of a file, as they came.

    Where one question was asked several times, its answers come in their order, and the last one
    again for every further time. Raises InputError where the source is not as it was left.
    """

    cost_basis: str | None = COST_BASIS

    def __init__(self, settings: ReplayBackend) -> None:
        self.name = settings.name
        self._kind = settings.kind
        read = read_run if settings.run is not None else read_answers
        self._source = read(Path(settings.run or settings.answers or "").expanduser())
        self._times: Counter[str] = Counter()

    def open(self, log_directory: Path) -> Self:
        """Start from the first answers."""
        del log_directory
        self._times.clear()
        return self

    def close(self) -> None:
        """Nothing is held."""

    def describe(self) -> dict[str, Any]:
        """The source, and the model that gave all its answers, where it was one."""
        source = self._source
        return {"kind": self._kind, "model": source.model, "source": dict(source.description)}

    def decide(self, request: Request) -> Decision:
        """The earlier answer; a failure where the source was never asked this."""
        sent = request.wire()
        key = question_key(request.state, request.question.wire())
        decisions = self._source.decisions.get(key)
        if decisions is None:
            model = self._source.model or self._kind
            return Decision(ok=False, model=model, error="not_in_source", request=sent)
        decision = decisions[min(self._times[key], len(decisions) - 1)]
        self._times[key] += 1
        return replace(decision, request=sent)


class AnswerLine(BaseModel):
    """`state` and `question` as in a task file, and exactly one of `probs`, `label`, `error`.

    A `label` of null says that the model abstained.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    state: Any
    question: dict[str, Any]
    probs: dict[str, Any] | None = None
    label: str | None = None
    error: str | None = None
    status_code: int | None = None
    model: str = Field(default="replay", min_length=1)
    probs_source: Literal["native", "verbalized"] = "native"
    usage: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_answer(self) -> Self:
        if "state" not in self.model_fields_set:
            raise ValueError("state: missing")
        answers = {"probs", "label", "error"} & self.model_fields_set
        is_null = answers != {"label"} and self.probs is None and self.error is None
        if len(answers) != 1 or is_null:
            raise ValueError('expected exactly one of "probs", "label" and "error"')
        return self

    def decision(self) -> Decision:
        """The line as a provider's answer."""
        label_only = "label" in self.model_fields_set
        return Decision(
            ok=self.error is None,
            model=self.model,
            probs=self.probs,
            label=self.label,
            probs_source=ProbsSource.LABEL_ONLY if label_only else ProbsSource(self.probs_source),
            error=self.error,
            status_code=self.status_code,
            usage=self.usage,
            response=self.model_dump(exclude={"state", "question"}, exclude_unset=True),
        )


def read_answers(path: Path) -> Source:
    """Read a file of answers; raises InputError, naming the file and the line that is no answer."""
    decisions: dict[str, list[Decision]] = {}
    digest = hashlib.sha256()
    try:
        with opened(path) as file:
            for number, line in numbered_lines(file):
                digest.update(line)
                if not line.strip():
                    continue
                try:
                    answer = AnswerLine.model_validate(loads(line))
                    question = Question.model_validate(answer.question)
                    key = question_key(answer.state, question.wire())
                except ValueError as error:
                    reason = f"{path}:{number}: not an answer: {_reason(error)}"
                    if not decisions and (advice := lines_advice(path)):
                        reason = f"{path}: {advice}"
                    raise InputError(f"backend.answers: {reason}") from error
                decisions.setdefault(key, []).append(answer.decision())
    except TooLong as error:
        raise InputError(f"backend.answers: {path}:{error.line}: {error}") from error
    except OSError as error:
        raise InputError(f"backend.answers: {path}: {error.strerror}") from error
    if not decisions:
        raise InputError(f"backend.answers: {path}: holds no answers; one JSON object a line")
    return Source(decisions, {"answers": path.name, "sha256": digest.hexdigest()})


def _reason(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_input=False, include_url=False)[0]
    message = first["msg"].removeprefix("Value error, ")
    field = ".".join(map(str, first["loc"]))
    return f"{field}: {message}" if field else message


def question_key(state: Any, question: Mapping[str, Any]) -> str:
    """The key of a question about a state, both as a provider receives them.

    The order of the options is part of the question, since a model may answer by it.
    """
    return dumps([state, question])


def read_run(path: Path) -> Source:
    """Verify a run's directory and read what was asked in it and answered.

    Raises InputError where it is no finished run, or not as the run left it.
    """
    if not path.is_dir():
        raise InputError(f"backend.run: {path}: no such folder; give a run's directory")
    run = _VerifiedRun(path)
    decisions: dict[str, list[Decision]] = {}
    for record in run.records():
        raw = run.raw(record)
        key = _key_in(raw["request"]) or run.asked_by_task(record.task_id)
        decisions.setdefault(key, []).append(decision_of(record, raw["response"]))
    manifest = run.manifest
    description = {
        "run": manifest.run,
        "status": manifest.status.value,
        "backend": manifest.backend.name,
        "dataset_hash": manifest.dataset.dataset_hash,
        "fingerprint": manifest.fingerprint and manifest.fingerprint.value,
        "checksums_sha256": file_sha256(path / CHECKSUMS),
    }
    return Source(decisions, description)


def _key_in(request: Any) -> str | None:
    """What was asked, where the raw request holds a whole System One body."""
    match request:
        case {"state": state, "questions": {"decision": Mapping() as question}}:
            return question_key(state, question)
    return None


class _VerifiedRun:
    """A run whose files are those that its checksums name; raises InputError where they are not."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._covered = self._verify_checksums()
        self._check_covered(MANIFEST)
        self._directory = RunDirectory(path)
        try:
            self.manifest = self._directory.read_manifest()
        except InputError as error:
            raise InputError(f"backend.run: {error}") from error

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
            return {task.id: task for task in dataset_of(self.manifest).tasks}
        except InputError as error:
            raise self._unusable(MANIFEST, str(error)) from error

    def _verify_checksums(self) -> frozenset[str]:
        """Hash every file that the run's checksums name; the names."""
        covered = set()
        try:
            for line, name, sha256 in read_checksums(self._path):
                if name is None:
                    raise self._unusable(f"{CHECKSUMS}:{line}", "not a checksum")
                try:
                    same = file_sha256(self._path / name) == sha256
                except OSError as error:
                    reason = f"{error.strerror}; the run left it there"
                    raise self._unusable(name, reason) from error
                if not same:
                    raise self._unusable(
                        name,
                        f"was changed after the run: its SHA-256 is not the one in {CHECKSUMS}",
                    )
                covered.add(name)
        except TooLong as error:
            raise self._unusable(f"{CHECKSUMS}:{error.line}", str(error)) from error
        except OSError as error:
            reason = f"{error.strerror}; a run that was killed has none, and cannot be replayed"
            raise self._unusable(CHECKSUMS, reason) from error
        return frozenset(covered)

    def _check_covered(self, name: str) -> None:
        if name not in self._covered:
            raise self._unusable(name, "the run's checksums do not name it")

    def _unusable(self, name: str, reason: str) -> InputError:
        return InputError(f"backend.run: {self._path / name}: {reason}")
