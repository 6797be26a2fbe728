"""OpenAI's wire: what is sent, what counts as an answer, and what is known beforehand."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jevexp.backends.decisions import Decisions
from jevexp.core.decision import Decision, Request
from jevexp.core.task import Question
from tests.support.llama import model_identity
from tests.support.scripted_llama import Answer, ScriptedLlama
from tests.support.systemone import (
    DECISIONS,
    MODEL,
    decided,
    decisions_settings,
    list_around,
    scripted_decision_service,
)
from tests.support.tasks import LABELS, LEVELS, task

TASKS = {kind: task(kind) for kind in ("noul", "choice", "score")}


class Asked:
    """An open provider, its service, and ways to have one answer read."""

    def __init__(self, backend: Decisions, service: ScriptedLlama) -> None:
        self.backend = backend
        self.service = service

    def decide(self, kind: str) -> Decision:
        return self.backend.decide(Request.of(TASKS[kind], "m-1"))

    def sent(self, kind: str) -> dict[str, Any]:
        self.decide(kind)
        body: dict[str, Any] = self.service.seen[-1].body
        return body

    def answers(self, kind: str, answers: Any) -> Decision:
        self.service.answers[DECISIONS] = Answer({**list_around(None), "answers": answers})
        return self.decide(kind)

    def answer(self, kind: str, **changes: Any) -> Decision:
        (question,) = self.sent(kind)["questions"]
        return self.answers(kind, [decided(question) | changes])


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    with scripted_decision_service() as service:
        backend = Decisions(decisions_settings(service.url), model_identity()).open(tmp_path)
        yield Asked(backend, service)
        backend.close()


def test_a_yes_or_no_question_is_a_predicate(asked: Asked) -> None:
    question = TASKS["noul"].question
    body = asked.sent("noul")
    assert set(body) == {"model", "input", "questions"}
    assert body["model"] == "m-1"
    (sent,) = body["questions"]
    assert set(sent) == {"type", "instructions"}
    assert sent["type"] == "predicate"
    assert sent["instructions"].startswith(question.instructions)
    assert asked.decide("noul").probs == {"no": 0.25, "yes": 0.75}


@pytest.mark.parametrize(
    ("criteria", "lines"),
    [
        (None, ""),
        ({"true": "it is late", "false": "it is not"}, "\nyes: it is late\nno: it is not"),
        ({"true": "it is late"}, "\nyes: it is late"),
        ({"false": "it is not"}, "\nno: it is not"),
    ],
)
def test_what_yes_and_no_mean_stands_below_the_instructions(
    asked: Asked, criteria: dict[str, str] | None, lines: str
) -> None:
    question = Question.model_validate(
        {"type": "noul", "instructions": "Is it late?", "criteria": criteria}
    )
    asked.backend.decide(Request("x", question, "m-1"))
    assert asked.service.seen[-1].body["questions"] == [
        {"type": "predicate", "instructions": f"Is it late?{lines}"}
    ]


@pytest.mark.parametrize(
    ("state", "text"),
    [("as it is", "as it is"), ({"b": 1, "a": "é"}, '{\n  "b": 1,\n  "a": "é"\n}'), ([], "[]")],
)
def test_a_state_that_is_no_text_is_written_out(asked: Asked, state: Any, text: str) -> None:
    asked.backend.decide(Request(state, TASKS["noul"].question, "m-1"))
    assert asked.service.seen[-1].body["input"] == text


def test_choices_and_levels_are_objects(asked: Asked) -> None:
    (choice,) = asked.sent("choice")["questions"]
    descriptions = TASKS["choice"].question.descriptions
    assert choice["choices"] == [
        {"value": label} | ({"description": descriptions[label]} if descriptions[label] else {})
        for label in TASKS["choice"].question.options
    ]
    (score,) = asked.sent("score")["questions"]
    assert score["levels"] == [{"label": text} for text in LEVELS]


def test_what_was_sent_stands_beside_the_question(asked: Asked) -> None:
    decision = asked.decide("choice")
    plain = Request.of(TASKS["choice"], "m-1").wire()
    assert decision.request == {
        **plain,
        "sent": {"endpoint": DECISIONS, "body": asked.service.seen[-1].body},
    }


def test_a_distribution_is_recorded_as_returned(asked: Asked) -> None:
    options = TASKS["choice"].question.options
    listed = [{"value": label, "probability": 0.3333} for label in reversed(options)]
    decision = asked.answer("choice", probabilities=listed, choice="no such label", confidence=7)
    assert decision.ok
    assert decision.probs == dict.fromkeys(LABELS, 0.3333)
    assert (decision.model, decision.status_code) == (MODEL, 200)
    assert decision.usage == {"input_tokens": 12, "output_tokens": 2}
    levels = asked.answer("score").probs
    assert levels is not None
    assert set(levels) == set("0123")


@pytest.mark.parametrize(
    ("kind", "changes", "code"),
    [
        ("noul", {"type": "choice"}, "bad_answer_type"),
        ("noul", {"type": None}, "bad_answer_type"),
        ("noul", {"probability": "0.5"}, "bad_answer_number"),
        ("noul", {"probability": True}, "bad_answer_number"),
        ("noul", {"probability": 1.01}, "bad_answer_number"),
        ("noul", {"refusal": "I cannot say."}, "refused"),
        ("noul", {"type": "refusal"}, "refused"),
        ("choice", {"refusal": {"reason": "x"}}, "refused"),
        ("choice", {"probabilities": None}, "bad_answer_labels"),
        ("choice", {"probabilities": {"a": 1}}, "bad_answer_labels"),
        ("choice", {"probabilities": []}, "bad_answer_labels"),
        ("choice", {"probabilities": ["a"]}, "bad_answer_labels"),
        ("choice", {"probabilities": [{"value": "a", "probability": 1}]}, "bad_answer_labels"),
        (
            "choice",
            {"probabilities": [{"value": name, "probability": "1"} for name in LABELS]},
            "bad_answer_number",
        ),
        (
            "score",
            {"probabilities": [{"value": n, "label": "x", "probability": 0.25} for n in range(4)]},
            "bad_answer_legend",
        ),
        (
            "score",
            {"probabilities": [{"value": n, "probability": 0.25} for n in range(4)]},
            "bad_answer_legend",
        ),
    ],
)
def test_nothing_is_repaired(asked: Asked, kind: str, changes: Any, code: str) -> None:
    decision = asked.answer(kind, **changes)
    assert (decision.ok, decision.error, decision.status_code) == (False, code, 200)
    assert decision.probs is None


def test_an_option_that_comes_twice_is_no_answer(asked: Asked) -> None:
    options = TASKS["choice"].question.options
    listed = [{"value": label, "probability": 0.25} for label in (*options, options[0])]
    assert asked.answer("choice", probabilities=listed).error == "bad_answer_labels"


@pytest.mark.parametrize("answers", [None, [], {}, ["x"], [None], "x"], ids=str)
def test_there_is_exactly_one_answer(asked: Asked, answers: Any) -> None:
    assert asked.answers("noul", answers).error == "bad_answer_id"
    good = decided({"type": "predicate"})
    assert asked.answers("noul", [good, good]).error == "bad_answer_id"
    assert asked.answers("noul", [good]).ok


@pytest.mark.parametrize(
    ("kind", "count", "reason"),
    [
        ("choice", 255, None),
        ("choice", 256, "256 choices in criteria; the Decisions API takes 1 to 255"),
        ("choice", 1, None),
        ("choice", 0, "0 choices in criteria; the Decisions API takes 1 to 255"),
        ("score", 2, None),
        ("score", 10, None),
        ("score", 1, "1 levels; the Decisions API takes 2 to 10"),
        ("score", 11, "11 levels; the Decisions API takes 2 to 10"),
    ],
)
def test_what_the_api_takes_is_known_beforehand(kind: str, count: int, reason: str | None) -> None:
    names = [f"option {number}" for number in range(count)]
    criteria: Any = (dict.fromkeys(names, "") or None) if kind == "choice" else names
    question = Question.model_validate({"type": kind, "instructions": "?", "criteria": criteria})
    asked_task = TASKS["noul"].model_copy(update={"question": question})
    backend = Decisions(decisions_settings("http://127.0.0.1:9"), model_identity())
    assert backend.why_unaskable(asked_task) == reason
