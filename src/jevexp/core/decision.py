"""What goes to a provider, and what comes back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from jevexp.core.task import Question, Task

# The provider refuses us, or asks us to go away: more requests would only cost.
STOP_STATUSES = frozenset({401, 403, 429})
# The code of an error under a status of success; one of these statuses may follow it, after `_`.
ERROR_BODY = "error_body"


class ProbsSource(StrEnum):
    """Where a distribution comes from."""

    NATIVE = "native"  # the model's own distribution
    VERBALIZED = "verbalized"  # the model wrote the numbers as text
    LABEL_ONLY = "label_only_no_calibrated_distribution"  # there is a label and no distribution
    UNKNOWN = "unknown"  # the attempt ended before the provider said


@dataclass(frozen=True, slots=True)
class Request:
    """All that a provider may see. It has no field for the answer, the family or the task's id."""

    state: Any
    question: Question
    model: str

    @classmethod
    def of(cls, task: Task, model: str) -> "Request":
        """The request for `task`, put to the model `model`."""
        # Without the question's unknown further keys, which may be the answer.
        question = Question.model_validate(task.question.wire())
        return cls(state=task.state, question=question, model=model)

    def wire(self) -> dict[str, Any]:
        """The System One request body: state, model and the question under "decision"."""
        return {
            "state": self.state,
            "model": self.model,
            "questions": {"decision": self.question.wire()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A provider's answer or failure, as it came: nothing is checked, rounded or repaired here.

    Attributes:
        ok: whether the provider answered. A wrong or malformed distribution is still an answer.
        model: the model that answered, as the provider names it.
        probs: label to probability; None when there is no distribution.
        label: the chosen label when there is no distribution; None means abstained.
        error: a safe code when not ok. Never a provider's message, which may hold a secret.
        status_code: the HTTP status where the provider gave one.
        usage: token counts as reported, under "input_tokens" and "output_tokens".
        request: what was sent, for the raw evidence; None when nothing was.
        response: what came back, for the raw evidence.
        runtime: what the provider says about how it ran this request.
    """

    ok: bool
    model: str
    probs: Mapping[str, Any] | None = None
    label: str | None = None
    probs_source: ProbsSource = ProbsSource.NATIVE
    error: str | None = None
    status_code: int | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    request: Any = None
    response: Any = None
    runtime: Mapping[str, Any] | None = None
