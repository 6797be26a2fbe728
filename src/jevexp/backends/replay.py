"""Earlier answers, found by what is asked: nothing is asked again, nothing is paid."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from jevexp.backends.rereading import AnswerReader, RawAnswer, decision_of, read_probabilities
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


def make(settings: ReplayBackend, model: ModelIdentity, tasks: Iterable[Task]) -> "Replay":
    """The provider; its source is read, and checked, here.

    Raises:
        InputError: the source cannot be read, or is not as it was left.
    """
    del model, tasks
    return Replay(settings)


def reader(settings: ReplayBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads distributions where a file of answers, or jevexp itself, put them."""
    del description
    field = "probs" if settings.answers is not None else "probabilities"

    def read(request: Request, raw: RawAnswer) -> Decision | None:
        del request
        return read_probabilities(raw, field)

    return AnswerReader(read, cost_basis=COST_BASIS)


class Replay:
    """Answers and failures of an earlier run, or of a file, as they came.

    Where one question was asked several times, its answers come in their order, and the last one
    again for every further time.

    Raises:
        InputError: the source cannot be read, or is not as it was left.
    """

    cost_basis: str | None = COST_BASIS

    def __init__(self, settings: ReplayBackend) -> None:
        self.name = settings.name
        self._kind = settings.kind
        self._source = _read(settings)
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
        return {
            "kind": self._kind,
            "model": self._source.model,
            "source": dict(self._source.description),
        }

    def decide(self, request: Request) -> Decision:
        """The earlier answer; a failure where the source was never asked this."""
        sent = request.wire()
        key = question_key(request.state, request.question.wire())
        given = self._source.decisions.get(key)
        if given is None:
            model = self._source.model or self._kind
            return Decision(ok=False, model=model, error="not_in_source", request=sent)
        decision = given[min(self._times[key], len(given) - 1)]
        self._times[key] += 1
        return replace(decision, request=sent)


def _read(settings: ReplayBackend) -> Source:
    if settings.run is not None:
        return read_run(Path(settings.run).expanduser())
    return read_answers(Path(str(settings.answers)).expanduser())


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
        given = {"probs", "label", "error"} & self.model_fields_set
        if len(given) != 1 or (given != {"label"} and self.probs is None and self.error is None):
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
    """Read a file of answers.

    Raises:
        InputError: naming the file and the line that is no answer.
    """
    decisions: dict[str, list[Decision]] = {}
    digest = hashlib.sha256()
    try:
        with opened(path) as file:
            for number, line in numbered_lines(file):
                digest.update(line)
                if line.strip():
                    try:
                        key, decision = _answer(line)
                    except ValueError as error:
                        if not decisions and (advice := lines_advice(path)):
                            raise InputError(f"backend.answers: {path}: {advice}") from error
                        raise InputError(
                            f"backend.answers: {path}:{number}: not an answer: {_reason(error)}"
                        ) from error
                    decisions.setdefault(key, []).append(decision)
    except TooLong as error:
        raise InputError(f"backend.answers: {path}:{error.line}: {error}") from error
    except OSError as error:
        raise InputError(f"backend.answers: {path}: {error.strerror}") from error
    if not decisions:
        raise InputError(f"backend.answers: {path}: holds no answers; one JSON object a line")
    description = {"answers": path.name, "sha256": digest.hexdigest()}
    return Source(decisions, description)


def _answer(line: bytes) -> tuple[str, Decision]:
    """What one line was asked, and what it answers.

    Raises:
        ValueError: it is no answer.
    """
    answer = AnswerLine.model_validate(loads(line))
    question = Question.model_validate(answer.question)
    return question_key(answer.state, question.wire()), answer.decision()


def _reason(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_input=False, include_url=False)[0]
    message = first["msg"].removeprefix("Value error, ")
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {message}" if place else message


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
