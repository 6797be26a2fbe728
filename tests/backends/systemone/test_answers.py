"""What counts as an answer: nothing is repaired, and nothing that was returned is lost."""

import json
from typing import Any

import pytest

from jevexp.core.decision import ProbsSource
from jevexp.core.task import Task
from jevexp.harness.scoring import score
from tests.backends.systemone.conftest import Asked
from tests.support.scripted_llama import Answer
from tests.support.systemone import MODEL, envelope
from tests.support.tasks import LABELS, LEVELS

CHOICE = dict.fromkeys(LABELS, 1 / 3)
SCORE = dict.fromkeys("0123", 0.25)


# Answers


@pytest.mark.parametrize("p", [0, 1, 0.0, 1.0, 0.3, 1e-9])
def test_a_noul_number_becomes_both_labels(asked: Asked, p: float) -> None:
    decision = asked.answer("noul", noul=p)
    assert decision.ok
    assert decision.probs == {"no": 1 - p, "yes": p}


def test_a_choice_is_recorded_as_returned(asked: Asked) -> None:
    rounded = {"billing": 0.3333, "Account Access": 0.3333, "shipping": 0.3333}
    decision = asked.answer("choice", probabilities=rounded)
    assert decision.ok
    assert decision.probs == rounded


def test_a_score_is_recorded_by_level_and_its_scalar_is_never_used(asked: Asked) -> None:
    returned = {"3": 0.1, "2": 0.2, "1": 0.3, "0": 0.4}
    decision = asked.answer("score", probabilities=returned, score=3)
    assert decision.ok
    assert decision.probs == returned


@pytest.mark.parametrize(
    ("kind", "scalars"),
    [
        ("choice", {"choice": "no such label", "confidence": 1.5}),
        ("choice", {"choice": None, "confidence": None}),
        ("score", {"score": "high", "confidence": -1}),
        ("score", {"score": None, "confidence": None}),
    ],
)
def test_the_scalars_beside_a_distribution_are_not_looked_at(
    asked: Asked, kind: str, scalars: dict[str, Any]
) -> None:
    assert asked.answer(kind, **scalars).probs == asked.answer(kind).probs


def test_an_answer_is_native_and_names_who_gave_it(asked: Asked) -> None:
    decision = asked.answer("noul")
    assert decision.probs_source is ProbsSource.NATIVE
    assert decision.model == MODEL
    assert decision.status_code == 200


def test_request_and_body_are_kept(asked: Asked, tasks: dict[str, Task]) -> None:
    decision = asked.body("noul", x_extra={"seen": [1, None]})
    question = tasks["noul"].question.wire()
    assert decision.request == {
        "state": tasks["noul"].state,
        "model": "m-1",
        "questions": {"decision": question},
    }
    assert decision.request == asked.service.seen[-1].body
    assert decision.response["body"]["x_extra"] == {"seen": [1, None]}


@pytest.mark.parametrize(
    ("kind", "probabilities", "reason"),
    [
        ("choice", {**CHOICE, "billing": 0.9}, "probs sum to"),
        ("choice", dict.fromkeys(LABELS, 0), "probs sum to"),
        ("choice", {**CHOICE, "billing": 1.2}, "out of [0,1]"),
        ("score", {**SCORE, "0": -0.1}, "out of [0,1]"),
    ],
)
def test_a_bad_distribution_is_passed_on_and_judged_by_the_scoring(
    asked: Asked, tasks: dict[str, Task], kind: str, probabilities: Any, reason: str
) -> None:
    decision = asked.answer(kind, probabilities=probabilities)
    assert decision.ok
    assert decision.probs == probabilities
    verdict = score(tasks[kind], decision)
    assert (verdict.valid, verdict.correct) == (False, False)
    assert reason in (verdict.schema_error or "")


# Usage


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"input_tokens": 5, "output_tokens": 0}, (5, 0)),
        ({"input_tokens": 5.0, "output_tokens": 2.5}, (5.0, 2.5)),
        ({"input_tokens": 5}, (5, None)),
        ({"input_tokens": True, "output_tokens": "2"}, (None, None)),
        ({"input_tokens": -1, "output_tokens": []}, (None, None)),
        ({}, (None, None)),
        (None, (None, None)),
        ("many", (None, None)),
        ([1, 2], (None, None)),
    ],
)
def test_usage_is_as_reported_and_null_where_it_counts_nothing(
    asked: Asked, usage: Any, counts: tuple[Any, Any]
) -> None:
    decision = asked.body("noul", usage=usage)
    assert decision.ok
    assert (decision.usage["input_tokens"], decision.usage["output_tokens"]) == counts


# What is no answer


def refused(decision: Any, code: str) -> bool:
    """Whether a decision failed with a code, without a number and with its evidence."""
    assert (decision.ok, decision.error) == (False, code)
    assert decision.probs is None
    assert decision.status_code == 200
    assert decision.response["body"]
    return True


@pytest.mark.parametrize("model", [None, "", 7, ["m-1"]])
def test_a_body_without_a_model_is_no_answer(asked: Asked, model: Any) -> None:
    assert refused(asked.body("noul", model=model), "bad_answer_model")


NOUL = {"type": "noul", "noul": 0.5}


@pytest.mark.parametrize(
    "answers",
    [
        None,
        [],
        [NOUL],
        {},
        {"Decision": NOUL},
        {"decision": NOUL, "other": NOUL},
        {"decision": NOUL, "decision ": NOUL},
    ],
)
def test_there_is_exactly_one_answer_and_it_is_the_decision(asked: Asked, answers: Any) -> None:
    assert refused(asked.body("noul", answers=answers), "bad_answer_id")


@pytest.mark.parametrize("answer", [None, 0.5, "yes", [0.5], {}, {"noul": 0.5}])
def test_an_answer_is_an_object_of_the_question_s_type(asked: Asked, answer: Any) -> None:
    assert refused(asked.body("noul", answers={"decision": answer}), "bad_answer_type")


@pytest.mark.parametrize(
    ("kind", "type_"), [("noul", "boolean"), ("noul", "choice"), ("choice", "score"), ("score", 1)]
)
def test_an_answer_of_another_type_is_refused(asked: Asked, kind: str, type_: Any) -> None:
    assert refused(asked.answer(kind, type=type_), "bad_answer_type")


@pytest.mark.parametrize("p", [True, False, "0.5", None, [0.5], {}, -0.001, 1.001, 2, 1 << 1000])
def test_a_noul_is_a_number_from_0_to_1(asked: Asked, p: Any) -> None:
    assert refused(asked.answer("noul", noul=p), "bad_answer_number")


@pytest.mark.parametrize(
    "probabilities",
    [
        None,
        [],
        [0.5, 0.5, 0],
        {},
        {"billing": 1},
        {**CHOICE, "other": 0},
        {"Billing": 0.5, "Account Access": 0.5, "shipping": 0},
        {"billing": 0.5, "account access": 0.5, "shipping": 0},
        {"billing": 0.5, "Account Access ": 0.5, "shipping": 0},
    ],
)
def test_a_choice_has_exactly_the_labels(asked: Asked, probabilities: Any) -> None:
    assert refused(asked.answer("choice", probabilities=probabilities), "bad_answer_labels")


@pytest.mark.parametrize(
    "probabilities",
    [
        [0.25] * 4,
        {"1": 0.25, "2": 0.25, "3": 0.25, "4": 0.25},
        {"0": 0.5, "1": 0.25, "2": 0.25},
        {"00": 0.25, "1": 0.25, "2": 0.25, "3": 0.25},
        dict.fromkeys(LEVELS, 0.25),
    ],
)
def test_a_score_has_exactly_the_levels(asked: Asked, probabilities: Any) -> None:
    assert refused(asked.answer("score", probabilities=probabilities), "bad_answer_labels")


@pytest.mark.parametrize("value", [True, None, "0.5", [1], {"p": 1}])
@pytest.mark.parametrize(("kind", "probabilities"), [("choice", CHOICE), ("score", SCORE)])
def test_a_probability_is_a_number(
    asked: Asked, kind: str, probabilities: dict[str, float], value: Any
) -> None:
    first = next(iter(probabilities))
    decision = asked.answer(kind, probabilities={**probabilities, first: value})
    assert refused(decision, "bad_answer_number")


@pytest.mark.parametrize(
    "legend",
    [
        None,
        list(LEVELS),
        {},
        dict(zip("1234", LEVELS, strict=True)),
        dict(zip("0123", reversed(LEVELS), strict=True)),
        dict(zip("012", LEVELS[:3], strict=True)),
        {**dict(zip("0123", LEVELS, strict=True)), "4": "beyond"},
        {**dict(zip("0123", LEVELS, strict=True)), "0": "Poor"},
    ],
)
def test_a_score_s_legend_is_the_question_s_criteria(asked: Asked, legend: Any) -> None:
    assert refused(asked.answer("score", legend=legend), "bad_answer_legend")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_no_json_number_is_no_response(asked: Asked, number: str) -> None:
    raw = json.dumps(envelope(NOUL)).replace("0.5", number)
    decision = asked.reply("noul", Answer(raw.encode()))
    assert (decision.ok, decision.error, decision.probs) == (False, "bad_response", None)
