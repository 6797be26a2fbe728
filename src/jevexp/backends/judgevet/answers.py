"""A judgevet response as a distribution; what judgevet lets through is refused here."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from jevexp.core.json import representable
from jevexp.core.task import Kind, Question


class WrongAnswer(Exception):
    """A response that holds no answer to the question; `code` says what is wrong with it."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def typed_question(question: Question) -> Any:
    """The question as judgevet's class for it; its criteria are left out when null."""
    from judgevet import Choice, Noul, Score

    of_kind = {Kind.NOUL: Noul, Kind.CHOICE: Choice, Kind.SCORE: Score}
    return of_kind[question.type](instructions=question.instructions, criteria=question.criteria)


def read_answer(question: Question, response: Any) -> dict[str, float]:
    """Label to probability, as returned; confidences and the scalar score are never looked at.

    Raises:
        WrongAnswer: no model is named, an answer is missing or too many, of another type, over
            other labels or levels, with another legend, or of something else than numbers.
    """
    if not isinstance(response.model, str) or not response.model:
        raise WrongAnswer("bad_answer_model")
    answers = response.answers
    if not isinstance(answers, Mapping) or set(answers) != {"decision"}:
        raise WrongAnswer("bad_answer_id")
    answer = answers["decision"]
    _check_type(question.type, answer)
    if question.type is Kind.NOUL:
        _check_numbers([answer.noul])
        if not 0 <= answer.noul <= 1:
            raise WrongAnswer("bad_answer_number")
        return {"no": 1 - answer.noul, "yes": answer.noul}
    found = answer.probabilities
    if question.type is Kind.SCORE:
        _check_legend(question, answer.legend)
        found = {str(level): p for level, p in found.items()}
    if set(found) != set(question.options):
        raise WrongAnswer("bad_answer_labels")
    _check_numbers(found.values())
    return {option: found[option] for option in question.options}


def response_json(response: Any) -> dict[str, Any]:
    """What the provider returned, as evidence, whatever it is made of."""
    answers = getattr(response, "answers", None)
    fields = {
        "model": getattr(response, "model", None),
        "usage": _plain(getattr(response, "usage", None)),
        "answers": (
            {name: _plain(answer) for name, answer in answers.items()}
            if isinstance(answers, Mapping)
            else answers
        ),
        "receipts": getattr(response, "receipts", None),
    }
    kept: dict[str, Any] = representable(fields)
    return kept


def token_counts(response: Any) -> dict[str, int | None]:
    """The usage as reported; None for a count that was not."""
    usage = getattr(response, "usage", None)
    counts = {name: getattr(usage, name, None) for name in ("input_tokens", "output_tokens")}
    return {name: count if type(count) is int else None for name, count in counts.items()}


def _check_type(kind: Kind, answer: Any) -> None:
    from judgevet import ChoiceAnswer, NoulAnswer, ScoreAnswer

    of_kind = {Kind.NOUL: NoulAnswer, Kind.CHOICE: ChoiceAnswer, Kind.SCORE: ScoreAnswer}
    if not isinstance(answer, of_kind[kind]):
        raise WrongAnswer("bad_answer_type")


def _check_legend(question: Question, legend: Mapping[Any, Any]) -> None:
    """A level that is no text may come back as the text that Python makes of it."""
    levels = question.criteria if isinstance(question.criteria, list) else []
    if set(legend) != set(range(len(levels))) or any(
        legend[index] not in ((level,) if isinstance(level, str) else (level, str(level)))
        for index, level in enumerate(levels)
    ):
        raise WrongAnswer("bad_answer_legend")


def _check_numbers(values: Iterable[Any]) -> None:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WrongAnswer("bad_answer_number")
        if not math.isfinite(value):
            raise WrongAnswer("bad_answer_number")


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {"class": type(value).__name__, **asdict(value)}
    return value
