"""What judgevet lets through and is no answer to the question is refused, and kept."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from jevexp.core.decision import Decision, ProbsSource, Request
from jevexp.core.json import dumps
from tests.backends.judgevet import made
from tests.backends.judgevet.conftest import Open
from tests.support.tasks import LABELS, LEVELS, task

MAKE = ("backend.provider=factory", "backend.factory=tests.backends.judgevet.made:make")


@pytest.fixture
def answered(opened: Open, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The decision on a kind of question, for answers that a provider returns."""

    def decide(kind: str, answers: Any, **fields: Any) -> Decision:
        response = SimpleNamespace(**{"model": "m-2", "usage": None, "answers": answers, **fields})
        port = SimpleNamespace(system_one=lambda state, questions, model: response)
        monkeypatch.setattr(made, "PORT", port)
        return opened(*MAKE).decide(Request.of(task(kind), "m-1"))

    return decide


def noul(p: Any = 0.75) -> Any:
    import judgevet

    answer = judgevet.NoulAnswer(0.5)
    object.__setattr__(answer, "noul", p)
    return answer


def choice(probabilities: Any = None) -> Any:
    import judgevet

    answer = judgevet.ChoiceAnswer("a", 1.0, {"a": 1.0})
    uniform = dict.fromkeys(LABELS, 1 / 3)
    object.__setattr__(answer, "probabilities", uniform if probabilities is None else probabilities)
    return answer


def score(legend: Any = None, probabilities: Any = None) -> Any:
    import judgevet

    answer = judgevet.ScoreAnswer(0.0, 1.0, {0: "a"}, {0: 1.0})
    uniform = dict.fromkeys(range(4), 0.25)
    object.__setattr__(answer, "legend", dict(enumerate(LEVELS)) if legend is None else legend)
    object.__setattr__(answer, "probabilities", uniform if probabilities is None else probabilities)
    return answer


def test_good_answers_are_distributions_over_the_labels(answered: Any) -> None:
    assert answered("noul", {"decision": noul()}).probs == {"no": 0.25, "yes": 0.75}
    assert answered("choice", {"decision": choice()}).probs == dict.fromkeys(LABELS, 1 / 3)
    decision = answered("score", {"decision": score()})
    assert decision.probs == {"0": 0.25, "1": 0.25, "2": 0.25, "3": 0.25}
    assert decision.probs_source is ProbsSource.NATIVE
    assert (decision.model, decision.status_code) == ("m-2", None)
    assert decision.usage == {"input_tokens": None, "output_tokens": None}


def test_a_choice_that_is_not_the_likeliest_and_a_confidence_are_not_looked_at(
    answered: Any,
) -> None:
    shares = {LABELS[0]: 0.1, LABELS[1]: 0.7, LABELS[2]: 0.2}
    answer = choice(shares)
    object.__setattr__(answer, "confidence", math.nan)
    decision = answered("choice", {"decision": answer})
    assert decision.probs == shares


def test_numbers_that_make_no_distribution_are_left_to_the_scoring(answered: Any) -> None:
    shares = dict.fromkeys(LABELS, 0.5)
    decision = answered("choice", {"decision": choice(shares)})
    assert (decision.ok, decision.probs) == (True, shares)


@pytest.mark.parametrize(
    ("kind", "make", "code"),
    [
        ("noul", lambda: {}, "bad_answer_id"),
        ("noul", lambda: None, "bad_answer_id"),
        ("noul", lambda: {"other": noul()}, "bad_answer_id"),
        ("noul", lambda: {"decision": noul(), "other": noul()}, "bad_answer_id"),
        ("noul", lambda: {"decision": choice()}, "bad_answer_type"),
        ("noul", lambda: {"decision": None}, "bad_answer_type"),
        ("noul", lambda: {"decision": {"noul": 0.5}}, "bad_answer_type"),
        ("noul", lambda: {"decision": noul(math.nan)}, "bad_answer_number"),
        ("noul", lambda: {"decision": noul(True)}, "bad_answer_number"),
        ("noul", lambda: {"decision": noul("0.5")}, "bad_answer_number"),
        ("noul", lambda: {"decision": noul(1.5)}, "bad_answer_number"),
        ("choice", lambda: {"decision": noul()}, "bad_answer_type"),
        ("choice", lambda: {"decision": choice({LABELS[0]: 1.0})}, "bad_answer_labels"),
        (
            "choice",
            lambda: {"decision": choice(dict.fromkeys([*LABELS, "x"], 0.25))},
            "bad_answer_labels",
        ),
        (
            "choice",
            lambda: {"decision": choice(dict.fromkeys([*LABELS[:2], "Shipping"], 0.25))},
            "bad_answer_labels",
        ),
        (
            "choice",
            lambda: {"decision": choice(dict.fromkeys(LABELS, math.inf))},
            "bad_answer_number",
        ),
        ("score", lambda: {"decision": choice()}, "bad_answer_type"),
        ("score", lambda: {"decision": score({0: "poor"}, {0: 1.0})}, "bad_answer_legend"),
        (
            "score",
            lambda: {"decision": score(dict(enumerate(reversed(LEVELS))))},
            "bad_answer_legend",
        ),
        (
            "score",
            lambda: {
                "decision": score(dict(enumerate(LEVELS, 1)), dict.fromkeys(range(1, 5), 0.25))
            },
            "bad_answer_legend",
        ),
        (
            "score",
            lambda: {"decision": score(None, dict.fromkeys(range(3), 1 / 3))},
            "bad_answer_labels",
        ),
    ],
)
def test_what_is_no_answer_to_the_question_is_a_failure_of_its_own(
    answered: Any, kind: str, make: Any, code: str
) -> None:
    decision = answered(kind, make())
    assert (decision.ok, decision.error, decision.probs) == (False, code, None)
    assert "answers" in decision.response
    dumps(decision.response)


@pytest.mark.parametrize("name", [None, "", 7])
def test_an_answer_by_nobody_is_a_failure(answered: Any, name: Any) -> None:
    decision = answered("noul", {"decision": noul()}, model=name)
    assert (decision.ok, decision.error, decision.model) == (False, "bad_answer_model", "m-1")


def test_a_level_that_is_no_text_may_come_back_as_text(opened: Open) -> None:
    levels: list[Any] = [{"a": 1}, "b"]
    question = {"type": "score", "instructions": "Which?", "criteria": levels}
    structured = task("score", question=question, labels=["0", "1"], expected=0)
    backend = opened("backend=typevet", "backend.typevet.backend=fake")
    assert backend.decide(Request.of(structured, "m-1")).probs == {"0": 0.5, "1": 0.5}
