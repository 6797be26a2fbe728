"""A JSON Lines file of answers: one question and its answer or failure a line."""

import hashlib
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from jevexp.backends.replay.source import Source, asked
from jevexp.core.decision import Decision, ProbsSource
from jevexp.core.json import loads
from jevexp.core.task import Question
from jevexp.errors import InputError
from jevexp.untrusted.files import TooLong, numbered_lines, opened


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
                    key, decision = _answer(line, f"backend.answers: {path}:{number}")
                    decisions.setdefault(key, []).append(decision)
    except TooLong as error:
        raise InputError(f"backend.answers: {path}:{error.line}: {error}") from error
    except OSError as error:
        raise InputError(f"backend.answers: {path}: {error.strerror}") from error
    if not decisions:
        raise InputError(f"backend.answers: {path}: holds no answers; one JSON object a line")
    description = {"answers": path.name, "sha256": digest.hexdigest()}
    return Source(decisions, description)


def _answer(line: bytes, place: str) -> tuple[str, Decision]:
    """What one line was asked, and what it answers."""
    try:
        answer = AnswerLine.model_validate(loads(line))
        question = Question.model_validate(answer.question)
    except ValueError as error:
        raise InputError(f"{place}: not an answer: {_reason(error)}") from error
    return asked(answer.state, question.wire()), answer.decision()


def _reason(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_input=False, include_url=False)[0]
    message = first["msg"].removeprefix("Value error, ")
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {message}" if place else message
