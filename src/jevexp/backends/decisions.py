"""OpenAI's Decisions API, as OpenAI, vLLM and gateways offer it: one question a request.

System One's rules apply: exact labels, nothing repaired, usage as reported. See
docs/reference/decisions.md.
"""

from collections.abc import Mapping
from typing import Any

from jevexp.backends.rereading import AnswerReader, RequestForm
from jevexp.backends.systemone import BadAnswer, Service, Wire, no_and_yes, number_of, read_by
from jevexp.core.decision import Request
from jevexp.core.task import Kind, Question, Task, as_text
from jevexp.settings import DecisionsBackend

_TYPES = {Kind.NOUL: "predicate", Kind.CHOICE: "choice", Kind.SCORE: "score"}
_MOST_CHOICES = 255
_LEVELS = range(2, 11)


class DecisionsWire(Wire):
    """The wire of this API: questions and answers are lists, options are objects."""

    def body(self, request: Request) -> dict[str, Any]:
        """The body of a request, with the state as text.

        A predicate has no place for criteria; they stand below its instructions.
        """
        question, descriptions = request.question, request.question.descriptions
        asked: dict[str, Any] = {
            "type": _TYPES[question.type],
            "instructions": question.instructions,
        }
        if question.type is Kind.CHOICE:
            asked["choices"] = [
                {"value": label} | ({"description": text} if text else {})
                for label, text in descriptions.items()
            ]
        elif question.type is Kind.SCORE:
            asked["levels"] = [{"label": text} for text in descriptions.values()]
        else:
            lines = (f"{label}: {descriptions[label]}" for label in ("yes", "no"))
            told = [line for line in lines if not line.endswith(": ")]
            asked["instructions"] += "".join(f"\n{line}" for line in told)
        return {"model": request.model, "input": as_text(request.state), "questions": [asked]}

    def probs(self, answer: Mapping[str, Any], question: Question) -> dict[str, Any]:
        """Label to probability, as returned; for noul both labels from the one number.

        Raises BadAnswer where there is not exactly one answer, or it is not one to this question.
        """
        answers = answer.get("answers")
        if not isinstance(answers, list) or len(answers) != 1 or not isinstance(answers[0], dict):
            raise BadAnswer("bad_answer_id")
        decided = answers[0]
        if decided.get("refusal") or decided.get("type") == "refusal":
            raise BadAnswer("refused")
        if decided.get("type") != _TYPES[question.type]:
            raise BadAnswer("bad_answer_type")
        if question.type is Kind.NOUL:
            return no_and_yes(decided.get("probability"))
        listed = decided.get("probabilities")
        if not isinstance(listed, list) or not all(isinstance(option, dict) for option in listed):
            raise BadAnswer("bad_answer_labels")
        values = [option.get("value") for option in listed]
        if question.type is Kind.SCORE:
            legend = {option.get("value"): option.get("label") for option in listed}
            if legend != dict(enumerate(question.descriptions.values())):
                raise BadAnswer("bad_answer_legend")
            values = [str(level) for level in values]
        if len(values) != len(question.options) or set(values) != set(question.options):
            raise BadAnswer("bad_answer_labels")
        numbers = [number_of(option.get("probability")) for option in listed]
        return dict(zip(values, numbers, strict=True))


class Decisions(Service[DecisionsBackend]):
    """A service with this API, as a provider."""

    def _wire(self) -> Wire:
        return DecisionsWire(self._settings.path)

    def why_unaskable(self, task: Task) -> str | None:
        """Why the API takes no such question; None where it takes it."""
        count = len(task.question.options)
        if task.question.type is Kind.SCORE and count not in _LEVELS:
            return f"{count} levels; the Decisions API takes 2 to 10"
        if task.question.type is Kind.CHOICE and not 1 <= count <= _MOST_CHOICES:
            return f"{count} choices in criteria; the Decisions API takes 1 to {_MOST_CHOICES}"
        return None


make = Decisions


def reader(settings: DecisionsBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads the one recorded answer to a request, by the code that read it first."""
    return read_by(DecisionsWire(settings.path), description, RequestForm.COMPUTED)
