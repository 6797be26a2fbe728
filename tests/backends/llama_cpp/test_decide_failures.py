"""Every way in which a decision fails is a safe code, once, with what came back."""

from typing import Any

import pytest

from jevexp.backends.llama_cpp import LlamaCpp
from jevexp.core.decision import Request
from jevexp.core.json import dumps
from jevexp.core.task import Question
from tests.support.llama import choice, noul
from tests.support.scripted_llama import Answer, Behaviour, ScriptedLlama, completion, tokens

YES, NO = tokens("yesno")
OVERFLOW = {"error": {"code": 400, "message": "too long", "type": "exceed_context_size_error"}}


def answering(*entries: Any) -> dict[str, Any]:
    return {"model": "m", "completion_probabilities": [{"top_probs": list(entries)}]}


@pytest.mark.parametrize(
    ("behaviour", "error", "status"),
    [
        (Answer({"error": {"message": "secret"}}, status=500), "http_error", 500),
        (Answer({"error": {"message": "secret"}}, status=503), "http_error", 503),
        (Answer({"error": {"message": "secret"}}, status=401), "http_error", 401),
        (Answer(b"<html>no</html>", status=502), "http_error", 502),
        (Answer({}, status=302, headers={"Location": "/elsewhere"}), "http_error", 302),
        (Answer(OVERFLOW, status=400), "context_overflow", 400),
        (Answer({"truncated": True}), "context_overflow", 200),
        (Answer(hang=True), "timeout", None),
        (Answer({"a": "b" * 200}, drip_s=0.02), "timeout", None),
        (Answer(drop=True), "connection_failed", None),
        (Answer(b"<html>hello</html>"), "bad_response", 200),
        (Answer(b"\xff\xfe"), "bad_response", 200),
        (Answer(b"[" * 100_000), "bad_response", 200),
        (Answer([1, 2]), "bad_response", 200),
        (Answer({}), "bad_response", 200),
        (Answer({"completion_probabilities": [{"top_probs": "x"}]}), "bad_response", 200),
        (Answer(answering({"id": YES, "prob": "0.5"})), "bad_response", 200),
        (Answer(answering({"id": YES, "prob": 1.5})), "bad_response", 200),
        (Answer(answering({"id": YES, "prob": 0}, {"id": NO, "prob": 0})), "bad_response", 200),
        (Answer(b'{"completion_probabilities": [{"top_probs": [NaN]}]}'), "bad_response", 200),
        (Answer(answering({"id": YES, "prob": 0.5})), "candidate_missing", 200),
        (Answer(b" " * (9 << 20)), "response_too_large", 200),
    ],
)  # fmt: skip
def test_a_failing_completion_is_a_code(
    backend: LlamaCpp, server: ScriptedLlama, behaviour: Behaviour, error: str, status: int | None
) -> None:
    server.answers["/completion"] = behaviour
    decision = backend.decide(noul())
    assert (decision.ok, decision.error, decision.status_code) == (False, error, status)
    assert decision.probs is None
    assert decision.model == "scripted"
    assert decision.request["sent"]["endpoint"] == "/completion"
    assert len(dumps(decision.response)) < 5000
    # Nothing is retried; only a candidate that is not listed is asked for differently.
    unlisted = error == "candidate_missing" or behaviour == Answer({})
    assert server.paths().count("/completion") == (2 if unlisted else 1)
    assert "/elsewhere" not in server.paths()


@pytest.mark.parametrize("endpoint", ["/apply-template", "/tokenize"])
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer({}, status=500), "http_error"),
        (Answer({"prompt": 3, "tokens": "abc"}), "bad_response"),
        (Answer(hang=True), "timeout"),
    ],
)
def test_a_failure_on_the_way_to_the_completion_is_one_too(
    backend: LlamaCpp, server: ScriptedLlama, endpoint: str, answer: Answer, error: str
) -> None:
    server.answers[endpoint] = answer
    decision = backend.decide(noul())
    assert (decision.ok, decision.error) == (False, error)
    assert "/completion" not in server.paths()


def test_the_body_of_a_refusal_is_kept(backend: LlamaCpp, server: ScriptedLlama) -> None:
    server.answers["/completion"] = Answer(OVERFLOW, status=400)
    decision = backend.decide(noul())
    assert decision.response == {"endpoint": "/completion", "body": OVERFLOW, "headers": {}}


def test_a_symbol_of_two_tokens_is_refused(backend: LlamaCpp, server: ScriptedLlama) -> None:
    server.answers["/tokenize"] = lambda body: Answer(
        {"tokens": [ord(character) for character in body["content"]]}
    )
    decision = backend.decide(noul())
    assert (decision.error, decision.status_code) == ("candidate_not_one_token", None)
    assert decision.response["symbol"] == "no"


def test_a_symbol_that_changes_the_prompt_s_tokens_is_refused(
    backend: LlamaCpp, server: ScriptedLlama
) -> None:
    server.answers["/tokenize"] = lambda body: Answer(
        {"tokens": [len(body["content"]), *tokens(body["content"])]}
    )
    assert backend.decide(noul()).error == "candidate_not_one_token"


def test_two_symbols_with_one_token_are_refused(backend: LlamaCpp, server: ScriptedLlama) -> None:
    server.answers["/tokenize"] = lambda body: Answer(
        {"tokens": [YES if token == NO else token for token in tokens(body["content"])]}
    )
    assert backend.decide(noul()).error == "candidate_not_one_token"


def test_more_than_52_options_are_not_sent(backend: LlamaCpp, server: ScriptedLlama) -> None:
    decision = backend.decide(choice(53))
    assert (decision.ok, decision.error, decision.request) == (False, "too_many_options", None)
    assert server.seen == []


def test_a_choice_without_criteria_is_not_sent(backend: LlamaCpp, server: ScriptedLlama) -> None:
    question = Question.model_validate({"type": "choice", "instructions": "Which?"})
    decision = backend.decide(Request("state", question, "m"))
    assert (decision.ok, decision.error) == (False, "options_unknown")
    assert server.seen == []


def test_the_next_decision_works_after_a_failure(backend: LlamaCpp, server: ScriptedLlama) -> None:
    for broken in (Answer(drop=True), Answer(hang=True), Answer(b" " * (9 << 20))):
        server.answers["/completion"] = broken
        assert not backend.decide(noul()).ok
        server.answers["/completion"] = lambda body: Answer(completion(body, {YES: 0.5, NO: 0.5}))
        assert backend.decide(noul()).ok
