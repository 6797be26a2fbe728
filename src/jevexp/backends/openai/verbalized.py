"""A question that is answered with written probabilities, and the strict reading of the answer."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from jevexp.backends.prompt import HEADINGS, as_text
from jevexp.core.decision import Request
from jevexp.core.json import dumps, loads
from jevexp.core.task import Kind, Question

# Goes up with every change that moves a single byte of a prompt or of the schema.
VERBALIZED_VERSION = "verbalized-1"

_CLOSING = (
    'Answer with a JSON object only: under "probabilities", the probability of each of them being '
    "the right one, as a number from 0 to 1. All of them sum to 1. The keys are exactly: "
)


def content(request: Request) -> str:
    """The content of the one user message; nothing but state and question is in it."""
    question = request.question
    return "\n\n".join(
        [
            "Read the following and then answer one question about it.",
            as_text(request.state),
            f"Question: {question.instructions}",
            HEADINGS[question.type] + "\n" + "\n".join(_lines(question)),
            _CLOSING + ", ".join(map(dumps, question.options)),
        ]
    )


def response_format(labels: Sequence[str]) -> dict[str, Any]:
    """The strict JSON schema: one number for each label, and nothing else."""
    numbers = {label: {"type": "number"} for label in labels}
    schema = _closed_object({"probabilities": _closed_object(numbers)})
    return {
        "type": "json_schema",
        "json_schema": {"name": "decision", "strict": True, "schema": schema},
    }


def read_probabilities(text: str, labels: Sequence[str]) -> dict[str, Any]:
    """The probabilities that a text is, in the order of `labels`.

    Numbers are passed on as they are: whether they are probabilities and what they sum to is for
    the scoring to judge.

    Raises:
        NotJSON: the text is something else than one JSON document.
        ValueError: it is one, and not exactly the object that was asked for.
    """
    try:
        loads(text, lenient=True)
    except ValueError as error:
        raise NotJSON from error
    # Once more: a repeated key makes it no answer, and JSON all the same.
    answer = json.loads(text, object_pairs_hook=_unique)
    if not isinstance(answer, dict) or set(answer) != {"probabilities"}:
        raise ValueError('not an object with "probabilities" alone')
    found = answer["probabilities"]
    if not isinstance(found, dict) or set(found) != set(labels):
        raise ValueError("not exactly the labels")
    if any(
        isinstance(value, bool) or not isinstance(value, int | float) for value in found.values()
    ):
        raise ValueError("not numbers")
    return {label: found[label] for label in labels}


class NotJSON(ValueError):
    """A text that is no JSON document."""


def _closed_object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _lines(question: Question) -> list[str]:
    """One line an option: its label in quotes, as it is a key of the answer, its description."""
    criteria = question.criteria
    described: Mapping[str, Any] = {}
    if isinstance(criteria, list):
        described = {str(level): text for level, text in enumerate(criteria)}
    elif isinstance(criteria, dict):
        noul = question.type is Kind.NOUL
        described = {"no": criteria.get("false"), "yes": criteria.get("true")} if noul else criteria
    lines = []
    for label in question.options:
        text = as_text(described.get(label))
        lines.append(f"{dumps(label)}: {text}" if text else dumps(label))
    return lines


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found
