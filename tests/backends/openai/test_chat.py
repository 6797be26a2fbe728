"""One request a decision, and every way in which it fails is a safe code, once."""

import json
from pathlib import Path
from typing import Any

import pytest

from jevexp.backends.openai.chat import OpenAIChat
from jevexp.core.decision import ProbsSource, Request
from jevexp.core.json import dumps
from jevexp.core.task import Question
from tests.support.llama import choice, model_identity, noul
from tests.support.openai import chat_settings
from tests.support.scripted_llama import Answer, ScriptedLlama
from tests.support.scripted_openai import completion

PATH = "/v1/chat/completions"
GOOD = '{"probabilities": {"no": 0.3, "yes": 0.6}}'
OVERFLOW = {"error": {"message": "too long", "code": "context_length_exceeded"}}


def test_a_decision_is_one_request_with_a_strict_schema(
    chat: OpenAIChat, server: ScriptedLlama, key: str
) -> None:
    decision = chat.decide(noul())
    (seen,) = server.seen
    assert (seen.method, seen.path) == ("POST", PATH)
    assert seen.headers["Authorization"] == f"Bearer {key}"
    assert set(seen.body) == {"model", "messages", "temperature", "max_tokens", "response_format"}
    assert (seen.body["model"], seen.body["temperature"], seen.body["max_tokens"]) == (
        "tiny-f32",
        0,
        2048,
    )
    assert [message["role"] for message in seen.body["messages"]] == ["user"]
    assert seen.body["response_format"]["json_schema"]["strict"] is True
    assert decision.request == noul().wire() | {"sent": {"endpoint": PATH, "body": seen.body}}
    assert decision.ok
    assert decision.probs_source is ProbsSource.VERBALIZED


def test_numbers_usage_and_model_are_the_server_s(chat: OpenAIChat, server: ScriptedLlama) -> None:
    server.answers[PATH] = Answer(completion(GOOD))
    decision = chat.decide(noul())
    # They do not sum to 1, which is for the scoring to judge.
    assert decision.probs == {"no": 0.3, "yes": 0.6}
    assert decision.usage == {"input_tokens": 7, "output_tokens": 3}
    assert (decision.model, decision.status_code) == ("served", 200)
    assert decision.response == {"endpoint": PATH, "body": completion(GOOD), "headers": {}}


@pytest.mark.parametrize(
    "usage", [None, "many", {}, {"prompt_tokens": True}, {"prompt_tokens": -1}]
)
def test_usage_that_is_not_said_is_unknown(
    chat: OpenAIChat, server: ScriptedLlama, usage: Any
) -> None:
    server.answers[PATH] = Answer(completion(GOOD) | {"usage": usage, "model": None})
    decision = chat.decide(noul())
    assert decision.usage == {"input_tokens": None, "output_tokens": None}
    assert decision.model == "served"


@pytest.mark.parametrize(
    ("answer", "error", "status"),
    [
        (Answer({"error": {"message": "secret"}}, status=400), "http_error", 400),
        (Answer({"error": {"message": "secret"}}, status=401), "http_error", 401),
        (Answer({"error": {"message": "secret"}}, status=403), "http_error", 403),
        (Answer({"error": {"message": "secret"}}, status=422), "http_error", 422),
        (Answer({"error": "secret"}, status=429), "http_error", 429),
        (Answer(b"<html>", status=502), "http_error", 502),
        (Answer({}, status=307, headers={"Location": "/elsewhere"}), "http_error", 307),
        (Answer(OVERFLOW, status=400), "context_overflow", 400),
        (Answer(hang=True), "timeout", None),
        (Answer({"a": "b" * 200}, drip_s=0.02), "timeout", None),
        (Answer(drop=True), "connection_failed", None),
        (Answer(b"<html>"), "bad_response", 200),
        (Answer([1]), "bad_response", 200),
        (Answer({}), "bad_response", 200),
        (Answer({"choices": []}), "bad_response", 200),
        (Answer({"choices": [3]}), "bad_response", 200),
        (Answer({"choices": [{"message": "x"}]}), "bad_response", 200),
        (Answer(b" " * (9 << 20)), "response_too_large", 200),
        (Answer(completion(None)), "no_content", 200),
        (Answer(completion("")), "no_content", 200),
        (Answer(completion([{"type": "text"}])), "no_content", 200),
        (Answer(completion(GOOD, finish_reason="length")), "truncated", 200),
        (Answer(completion(GOOD, finish_reason="content_filter")), "content_filter", 200),
        (Answer(completion(None, message={"content": None, "refusal": "No."})), "refusal", 200),
        (Answer(completion(f"```json\n{GOOD}\n```")), "not_json", 200),
        (Answer(completion(f"Sure! {GOOD}")), "not_json", 200),
        (Answer(completion('{"probabilities": {"no": 1}}')), "bad_answer", 200),
        (Answer(completion('{"probabilities": {"no": 1, "yes": "0"}}')), "bad_answer", 200),
    ],
)  # fmt: skip
def test_a_failing_answer_is_a_code(
    chat: OpenAIChat, server: ScriptedLlama, answer: Answer, error: str, status: int | None
) -> None:
    server.answers[PATH] = answer
    decision = chat.decide(noul())
    assert (decision.ok, decision.error, decision.status_code) == (False, error, status)
    assert decision.probs is None
    assert decision.model == "served"
    assert decision.request["sent"]["endpoint"] == PATH
    assert len(dumps(decision.response)) < 5000
    assert server.paths() == [PATH]


def test_the_next_decision_works_after_a_failure(chat: OpenAIChat, server: ScriptedLlama) -> None:
    for broken in (Answer(drop=True), Answer(hang=True), Answer(completion("?"))):
        server.answers[PATH] = broken
        assert not chat.decide(noul()).ok
        server.answers[PATH] = Answer(completion(GOOD))
        assert chat.decide(noul()).ok


def test_a_key_that_the_server_repeats_is_in_no_evidence(
    chat: OpenAIChat, server: ScriptedLlama, key: str
) -> None:
    for answer in (
        Answer(completion(GOOD) | {"echo": f"Bearer {key}"}),
        Answer(completion(f'{{"your key": "{key}"}}')),
        Answer({"error": {"message": f"no such key: {key}"}}, status=401),
        Answer(f"<html>{key}</html>".encode(), status=500),
    ):
        server.answers[PATH] = answer
        decision = chat.decide(noul())
        assert not decision.ok
        assert key not in repr(decision)


def test_options_are_added_and_fields_removed(server: ScriptedLlama, tmp_path: Path) -> None:
    settings = chat_settings(
        base_url=server.url,
        options={"max_completion_tokens": 9, "temperature": 0.5},
        remove=("max_tokens",),
    )
    backend = OpenAIChat(settings, model_identity()).open(tmp_path)
    decision = backend.decide(noul())
    sent = server.seen[-1].body
    assert (sent["max_completion_tokens"], sent["temperature"]) == (9, 0.5)
    assert "max_tokens" not in sent
    assert decision.request["sent"]["body"] == sent
    assert backend.describe()["readout"] == {
        "max_tokens": 2048,
        "options": {"max_completion_tokens": 9, "temperature": 0.5},
        "remove": ["max_tokens"],
    }
    backend.close()


def test_further_headers_come_from_the_environment(
    server: ScriptedLlama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_ORG", "organisation-1")
    settings = chat_settings(base_url=server.url, header_env={"X-Org": "TEST_ORG"})
    backend = OpenAIChat(settings, model_identity()).open(tmp_path)
    backend.decide(noul())
    assert server.seen[-1].headers["X-Org"] == "organisation-1"
    assert "organisation-1" not in json.dumps(backend.describe())
    backend.close()


def test_the_model_that_is_asked_for_is_the_request_s(
    chat: OpenAIChat, server: ScriptedLlama
) -> None:
    for name in ("one", "other"):
        chat.decide(Request("state", noul().question, name))
    assert [seen.body["model"] for seen in server.seen] == ["one", "other"]


def test_many_options_are_fine_and_none_are_not_sent(
    chat: OpenAIChat, server: ScriptedLlama
) -> None:
    assert chat.decide(choice(300)).ok
    server.seen.clear()
    question = Question.model_validate({"type": "choice", "instructions": "Which?"})
    decision = chat.decide(Request("state", question, "m"))
    assert (decision.ok, decision.error, decision.request) == (False, "options_unknown", None)
    assert server.seen == []
