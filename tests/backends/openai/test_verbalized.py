"""What a model is asked for in words, and how strictly its answer is read."""

from typing import Any

import pytest

from jevexp.backends.openai.chat import NotJSON, content, read_probabilities, response_format
from jevexp.core.decision import Request
from tests.support.llama import noul, score
from tests.support.tasks import task

LABELS = ("no", "yes")


def test_the_message_holds_state_question_and_labels() -> None:
    assert content(noul("The box is crushed.")) == (
        "Read the following and then answer one question about it.\n\n"
        "The box is crushed.\n\n"
        "Question: Does the customer complain?\n\n"
        'Possible answers:\n"no": there is none\n"yes": there is a complaint\n\n'
        'Answer with a JSON object only: under "probabilities", the probability of each of them '
        "being the right one, as a number from 0 to 1. All of them sum to 1. The keys are exactly: "
        '"no", "yes"'
    )


def test_levels_are_named_by_their_numbers() -> None:
    text = content(score(3))
    assert 'lowest to highest:\n"0": urgency of 0\n"1": urgency of 1\n"2": urgency of 2' in text


def test_labels_are_written_as_the_keys_that_they_are() -> None:
    labels = ['say "yes"', "größe", " a "]
    question = {
        "type": "choice",
        "instructions": "Which?",
        "criteria": {'say "yes"': None, "größe": {"cm": 3}, " a ": "first"},
    }
    of = task("choice", question=question, labels=labels, expected=" a ")
    text = content(Request.of(of, "m"))
    assert '"say \\"yes\\""\n"größe": {\n  "cm": 3\n}\n" a ": first' in text
    assert text.endswith('"say \\"yes\\"", "größe", " a "')


def test_the_schema_is_closed_and_strict() -> None:
    assert response_format(LABELS) == {
        "type": "json_schema",
        "json_schema": {
            "name": "decision",
            "strict": True,
            "schema": {
                "type": "object",
                "properties": {
                    "probabilities": {
                        "type": "object",
                        "properties": {"no": {"type": "number"}, "yes": {"type": "number"}},
                        "required": ["no", "yes"],
                        "additionalProperties": False,
                    }
                },
                "required": ["probabilities"],
                "additionalProperties": False,
            },
        },
    }


@pytest.mark.parametrize(
    ("text", "probs"),
    [
        ('{"probabilities": {"yes": 0.25, "no": 0.75}}', {"no": 0.75, "yes": 0.25}),
        (' {"probabilities": {"no": 0, "yes": 1}}\n', {"no": 0, "yes": 1}),
        # Not a distribution, which is for the scoring to say.
        ('{"probabilities": {"no": 3, "yes": -1e3}}', {"no": 3, "yes": -1000.0}),
    ],
)
def test_the_object_asked_for_is_passed_on(text: str, probs: dict[str, Any]) -> None:
    found = read_probabilities(text, LABELS)
    assert found == probs
    assert list(found) == list(LABELS)


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "",
        '```json\n{"probabilities": {"no": 0, "yes": 1}}\n```',
        'Here it is: {"probabilities": {"no": 0, "yes": 1}}',
        '{"probabilities": {"no": 0, "yes": 1}} I hope that helps.',
        '{"probabilities": {"no": 0, "yes": 1}',
        '{"probabilities": {"no": NaN, "yes": 1}}',
        '{"probabilities": {"no": 1e999, "yes": 1}}',
        "[" * 100_000,
    ],
)
def test_anything_else_than_json_is_not_searched_for_json(text: str) -> None:
    with pytest.raises(NotJSON):
        read_probabilities(text, LABELS)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "1",
        '{"no": 0.5, "yes": 0.5}',
        '{"probabilities": [0.5, 0.5]}',
        '{"probabilities": {"no": 0.5, "yes": 0.5}, "reason": "x"}',
        '{"probabilities": {"yes": 1}}',
        '{"probabilities": {"no": 0.5, "yes": 0.5, "maybe": 0}}',
        '{"probabilities": {"No": 0.5, "yes": 0.5}}',
        '{"probabilities": {"no": "0.5", "yes": 0.5}}',
        '{"probabilities": {"no": true, "yes": false}}',
        '{"probabilities": {"no": null, "yes": 1}}',
        '{"probabilities": {"no": 0.9, "no": 0.1, "yes": 0.1}}',
        '{"probabilities": {}, "probabilities": {"no": 0.9, "yes": 0.1}}',
    ],
)
def test_another_object_is_not_repaired(text: str) -> None:
    with pytest.raises(ValueError, match=r"not|twice") as raised:
        read_probabilities(text, LABELS)
    assert not isinstance(raised.value, NotJSON)
