"""What an answer says, if it is one; see docs/reference/systemone.md.

Nothing is repaired. What is not an answer of the question's type is refused with a code, whereas
numbers that make no good distribution are passed on: judging those is the scoring's part.
"""

from collections.abc import Mapping
from typing import Any

from jevexp.core.task import Kind, Question

DECISION = "decision"


class BadAnswer(Exception):
    """The body holds no answer to the question; `code` says what is wrong with it."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def read_model(body: Mapping[str, Any]) -> str:
    """The model that answered; raises BadAnswer where the body names none."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise BadAnswer("bad_answer_model")
    return model


def read_probs(body: Mapping[str, Any], question: Question) -> dict[str, Any]:
    """Label to probability, as returned; for noul both labels from the one number.

    The scalars beside a distribution (`choice`, `score`, `confidence`) are not looked at.

    Raises:
        BadAnswer: there is not exactly one answer, or it is not one to this question.
    """
    answers = body.get("answers")
    if not isinstance(answers, dict) or set(answers) != {DECISION}:
        raise BadAnswer("bad_answer_id")
    answer = answers[DECISION]
    if not isinstance(answer, dict) or answer.get("type") != question.type.value:
        raise BadAnswer("bad_answer_type")
    if question.type is Kind.NOUL:
        p = _number(answer.get("noul"))
        if not 0 <= p <= 1:
            raise BadAnswer("bad_answer_number")
        return {"no": 1 - p, "yes": p}
    if question.type is Kind.SCORE and answer.get("legend") != _legend(question):
        raise BadAnswer("bad_answer_legend")
    return _distribution(answer.get("probabilities"), question)


def read_usage(body: Mapping[str, Any]) -> dict[str, int | float | None]:
    """The token counts as reported; null where there is none, or one that counts nothing."""
    usage = body.get("usage")
    reported = usage if isinstance(usage, dict) else {}
    return {name: _count(reported.get(name)) for name in ("input_tokens", "output_tokens")}


def _legend(question: Question) -> dict[str, Any]:
    criteria = question.criteria if isinstance(question.criteria, list) else []
    return {str(level): description for level, description in enumerate(criteria)}


def _distribution(found: Any, question: Question) -> dict[str, Any]:
    # A choice without criteria names no options here; the task knows its labels.
    options = set(question.options)
    if not isinstance(found, dict) or (options and set(found) != options):
        raise BadAnswer("bad_answer_labels")
    return {label: _number(p) for label, p in found.items()}


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadAnswer("bad_answer_number")
    return value


def _count(value: Any) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if value >= 0 else None
