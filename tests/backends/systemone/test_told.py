"""What an answer says about itself: its cost, the mass of its labels, a cut state, whom to ask."""

from typing import Any

import pytest

from jevexp.core.decision import Decision, Request
from jevexp.harness.runner import Tariff
from jevexp.settings.run import REPORTED_COST
from tests.backends.systemone.conftest import TASKS, Asked
from tests.support.scripted_llama import Answer
from tests.support.systemone import envelope, good

COST = "x-litellm-response-cost"
USAGE = {"input_tokens": 12, "output_tokens": 2}


def with_headers(asked: Asked, headers: dict[str, str], **changes: Any) -> Decision:
    body = envelope(good(TASKS["noul"].question.wire())) | changes
    return asked.reply("noul", Answer(body, headers=headers))


def test_an_answer_that_says_nothing_has_no_runtime(asked: Asked) -> None:
    decision = asked.answer("noul")
    assert decision.runtime is None
    assert decision.usage == USAGE


@pytest.mark.parametrize(
    ("mass", "outside"),
    [(0.03, 0.97), (1, 0.0), (1.0, 0.0), (1.0000005, 0.0), (0, 1.0), (0.75, 0.25)],
)
def test_the_mass_of_the_labels_tells_that_outside(
    asked: Asked, mass: float, outside: float
) -> None:
    diagnostics = {"decision": {"label_mass": mass, "argmax_is_label": True}}
    decision = asked.body("noul", diagnostics=diagnostics)
    assert decision.runtime == {"off_option_mass": pytest.approx(outside, abs=1e-12)}


def test_it_may_stand_in_the_answer_itself(asked: Asked) -> None:
    decision = asked.answer("choice", label_mass=0.5)
    assert decision.ok
    assert decision.runtime == {"off_option_mass": 0.5}


@pytest.mark.parametrize("mass", [1.0004, -0.1, "0.5", True, None, [0.5]])
def test_a_mass_that_cannot_be_known_is_null_and_not_zero(asked: Asked, mass: Any) -> None:
    assert asked.body("noul", diagnostics={"decision": {"label_mass": mass}}).runtime is None


@pytest.mark.parametrize(
    ("usage", "runtime"),
    [
        (
            {"truncated": True, "state_tokens_dropped": 150_000},
            {"truncated": True, "dropped_tokens": 150_000},
        ),
        ({"truncated": True}, {"truncated": True}),
        ({"state_tokens_dropped": 3}, {"truncated": True, "dropped_tokens": 3}),
        ({"truncated": False, "state_tokens_dropped": 0}, None),
        ({"truncated": "yes"}, None),
    ],
)
def test_a_cut_state_is_told(
    asked: Asked, usage: dict[str, Any], runtime: dict[str, Any] | None
) -> None:
    assert asked.body("noul", usage=USAGE | usage).runtime == runtime


def test_whom_to_ask_about_an_answer_is_kept(asked: Asked) -> None:
    decision = asked.body("noul", id="gen-1", provider="TypeSafe")
    assert decision.runtime == {"request_id": "gen-1", "provider": "TypeSafe"}
    decision = with_headers(asked, {"X-Request-Id": "req-7"})
    assert decision.runtime == {"request_id": "req-7"}
    assert decision.response["headers"] == {"x-request-id": "req-7"}


@pytest.mark.parametrize(
    ("usage", "headers", "cost"),
    [
        ({"cost": 0.000019992}, {}, 0.000019992),
        ({"cost": 0}, {}, 0),
        ({"cost": 0.5}, {COST: "0.25"}, 0.5),
        ({}, {COST: "2e-05"}, 2e-05),
        ({}, {COST: "cheap"}, None),
        ({}, {COST: "nan"}, None),
        ({}, {COST: "-1"}, None),
        ({"cost": "0.5"}, {}, None),
        ({"cost": -1}, {}, None),
        ({"cost": True}, {}, None),
    ],
)
def test_the_cost_is_kept_as_it_is_reported(
    asked: Asked, usage: dict[str, Any], headers: dict[str, str], cost: float | None
) -> None:
    decision = with_headers(asked, headers, usage=USAGE | usage)
    assert decision.usage.get("cost") == cost
    assert ("cost" in decision.usage) is (cost is not None)
    tariff = Tariff(None, None, REPORTED_COST)
    assert tariff.cost(decision) == (cost, "reported_by_provider")
    # Where nobody asked for the reported cost, it is only kept.
    assert Tariff(None, None, "unknown").cost(decision) == (None, "unknown")


def test_an_answer_that_fails_may_cost_all_the_same(asked: Asked) -> None:
    body = envelope({"type": "noul"}) | {"usage": {**USAGE, "cost": 0.001}}
    decision = asked.reply("noul", Answer(body))
    assert (decision.ok, decision.error) == (False, "bad_answer_number")
    assert Tariff(None, None, REPORTED_COST).cost(decision) == (0.001, "reported_by_provider")


def test_a_cost_beyond_all_is_none(asked: Asked) -> None:
    decision = asked.body("noul", usage={**USAGE, "cost": 1e16})
    assert Tariff(None, None, REPORTED_COST).cost(decision)[0] is None


@pytest.mark.parametrize(
    "body", [{}, {"result": None}, {"result": []}, {"Result": {}}, {"result": "x"}], ids=str
)
def test_a_body_without_the_envelope_is_no_answer(asked: Asked, body: dict[str, Any]) -> None:
    from jevexp.backends.systemone import Wire, ask
    from jevexp.backends.transport import Transport

    asked.service.answers["/v1/systemone"] = Answer(body)
    transport = Transport(asked.service.url, None, 5.0, 5.0)
    request = Request.of(TASKS["noul"], "m-1")
    decision = ask(transport, None, request, Wire(envelope="/result"))
    transport.close()
    assert (decision.ok, decision.error, decision.status_code) == (False, "bad_envelope", 200)
    assert decision.response["body"] == body
