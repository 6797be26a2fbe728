"""Earlier answers, found by what is asked: nothing is asked again, nothing is paid."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from jevexp.backends.replayed_run import Source, question_key, read_run
from jevexp.backends.rereading import AnswerReader, RawAnswer, read_probabilities
from jevexp.core.decision import Decision, ProbsSource, Request
from jevexp.core.json import loads
from jevexp.core.task import Question, Task
from jevexp.datasets.tasks import lines_advice
from jevexp.errors import InputError
from jevexp.settings import ModelIdentity, ReplayBackend
from jevexp.untrusted.files import TooLong, numbered_lines, opened

COST_BASIS = "replayed_no_new_cost"


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
