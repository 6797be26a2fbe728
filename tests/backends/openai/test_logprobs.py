"""The model's own distribution, from whatever a server shows of it, and nothing made up."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jevexp.backends.llama_cpp import LlamaCpp
from jevexp.backends.openai.logprobs import OpenAILogprobs
from jevexp.core.decision import Decision, ProbsSource, Request
from jevexp.core.json import dumps
from tests.support.llama import backend_settings, choice, model_identity, noul, score
from tests.support.openai import logprobs_settings
from tests.support.scripted_llama import Answer, ScriptedLlama, tokens
from tests.support.scripted_openai import (
    HOSTED,
    LLAMA,
    LOGITS,
    MODEL,
    NO,
    SGLANG,
    VLLM,
    YES,
    Flavour,
    completion,
    probabilities,
    scripted_openai,
)

FLAVOURS = {"llama.cpp": LLAMA, "vLLM": VLLM, "SGLang": SGLANG}
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
QUESTIONS = {"noul": noul(), "26 options": choice(26), "4 levels": score(4), "one": choice(1)}
BLIND = Flavour("prompt only", "ignored", "text", most=1000)


@contextmanager
def served(
    flavour: Flavour, folder: Path, **settings: Any
) -> Iterator[tuple[OpenAILogprobs, ScriptedLlama]]:
    with scripted_openai(flavour) as server:
        own = logprobs_settings(base_url=server.url, timeout_s=2.0, **settings)
        backend = OpenAILogprobs(own, model_identity()).open(folder)
        server.seen.clear()
        try:
            yield backend, server
        finally:
            backend.close()


def symbols(decision: Decision) -> dict[str, str]:
    candidates = decision.request["sent"]["candidates"]
    return {label: candidate["text"] for label, candidate in candidates.items()}


def mass(decision: Decision) -> float:
    """The share of the scripted model's distribution that the symbols have."""
    chosen = [LOGITS[tokens(text)[0]] for text in symbols(decision).values()]
    total = math.fsum(math.exp(logit) for logit in LOGITS.values())
    return math.fsum(math.exp(logit) for logit in chosen) / total


# Distributions


@pytest.mark.parametrize("route", [None, "chat"])
@pytest.mark.parametrize("request_", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("flavour", FLAVOURS.values(), ids=FLAVOURS)
def test_every_server_s_distribution_is_the_softmax_over_the_candidates(
    tmp_path: Path, flavour: Flavour, request_: Request, route: str | None
) -> None:
    with served(flavour, tmp_path, route=route) as (backend, _):
        decision = backend.decide(request_)
        assert decision.ok, decision
        assert decision.probs == pytest.approx(probabilities(symbols(decision)), abs=1e-9)
        assert decision.probs_source is ProbsSource.NATIVE
        assert decision.model == MODEL
        assert decision.runtime is not None
        assert decision.runtime["off_option_mass"] == pytest.approx(1 - mass(decision), abs=1e-6)


def test_a_bias_that_reaches_the_probabilities_needs_one_request(tmp_path: Path) -> None:
    for flavour in (LLAMA, SGLANG):
        with served(flavour, tmp_path) as (backend, server):
            decision = backend.decide(choice(26))
            asked = [seen for seen in server.seen if seen.path in (CHAT, COMPLETIONS)]
            assert len(asked) == 1
            assert set(asked[0].body["logit_bias"].values()) == {12.0}
            assert decision.request["sent"]["body"] == asked[0].body
            assert decision.usage == {"input_tokens": 7, "output_tokens": 3}


def test_a_bias_that_only_forces_a_token_is_used_for_what_is_not_listed(tmp_path: Path) -> None:
    with served(VLLM, tmp_path) as (backend, server):
        decision = backend.decide(noul())
        asked = [seen.body for seen in server.seen if seen.path == COMPLETIONS]
    assert "logit_bias" not in asked[0]
    assert [body["logit_bias"] for body in asked[1:]] == [{str(NO): 100.0}]
    sent, response = decision.request["sent"], decision.response
    assert sent["further_biases"] == [{str(NO): 100.0}]
    assert len(response["further_bodies"]) == 1
    assert response["readout"]["bias"] is None
    assert decision.usage == {"input_tokens": 14, "output_tokens": 6}
    assert decision.runtime is not None
    assert decision.runtime["requests"] == 2


def test_the_prompt_is_the_one_that_llama_cpp_is_asked_with(tmp_path: Path) -> None:
    with served(LLAMA, tmp_path) as (backend, server):
        native = LlamaCpp(backend_settings(base_url=server.url), model_identity()).open(tmp_path)
        for request in QUESTIONS.values():
            one, other = backend.decide(request), native.decide(request)
            for name in ("prompt_sha256", "candidates"):
                assert one.request["sent"][name] == other.request["sent"][name]
            assert one.request["sent"]["body"]["prompt"] == other.request["sent"]["body"]["prompt"]
        native.close()


def test_a_completion_s_prompt_has_its_special_tokens_once(tmp_path: Path) -> None:
    with served(VLLM, tmp_path) as (backend, _):
        sent = backend.decide(noul()).request["sent"]["body"]
        assert sent["prompt"].startswith("<|im_start|>user\n")
        assert sent["add_special_tokens"] is False


def test_a_chat_is_told_not_to_think(tmp_path: Path) -> None:
    with served(SGLANG, tmp_path) as (backend, server):
        backend.decide(noul())
        assert server.seen[-1].body["chat_template_kwargs"] == {"enable_thinking": False}


# What cannot be read


def test_what_a_server_does_not_list_is_a_failure_and_no_zero(tmp_path: Path) -> None:
    for flavour in (HOSTED, Flavour("prompt only", "ignored", "text", most=20)):
        with served(flavour, tmp_path) as (backend, server):
            decision = backend.decide(noul())
            assert (decision.ok, decision.error) == (False, "candidate_missing")
            assert decision.probs is None
            assert decision.status_code == 200
            assert decision.response["body"]["choices"]
            assert server.paths().count(CHAT) == 1


def test_without_a_bias_what_is_listed_can_be_read(tmp_path: Path) -> None:
    with served(BLIND, tmp_path, readout={"bias": 12.0, "top_logprobs": 100}) as (backend, _):
        assert backend.describe()["features"]["logit_bias"] == "ignored"
        decision = backend.decide(noul())
        assert decision.probs == pytest.approx(probabilities({"no": "no", "yes": "yes"}), abs=1e-9)


def test_an_answer_without_a_list_is_asked_for_with_a_stronger_bias(tmp_path: Path) -> None:
    with served(LLAMA, tmp_path) as (backend, server):
        before = server.answers[COMPLETIONS]
        assert not isinstance(before, Answer)

        def answer(body: Any) -> Answer:
            found = before(body)
            if 100.0 not in body["logit_bias"].values():
                found.body["choices"][0]["logprobs"] = None
            return found

        server.answers[COMPLETIONS] = answer
        decision = backend.decide(noul())
        assert decision.probs == pytest.approx(probabilities({"no": "no", "yes": "yes"}), abs=1e-9)
        assert decision.response["readout"]["bias"] == 100.0
        assert decision.response["body"]["choices"][0]["logprobs"] is None
        assert len(decision.response["further_bodies"]) == 1
        assert decision.runtime is not None
        assert decision.runtime["requests"] == 2


def test_a_token_that_is_not_forced_after_all_is_missing(tmp_path: Path) -> None:
    with served(VLLM, tmp_path) as (backend, server):
        before = server.answers[COMPLETIONS]
        assert not isinstance(before, Answer)
        server.answers[COMPLETIONS] = lambda body: before(body | {"logit_bias": {}})
        assert backend.decide(noul()).error == "candidate_missing"


def test_two_tokens_that_are_spelled_alike_are_not_chosen_from(tmp_path: Path) -> None:
    with served(SGLANG, tmp_path) as (backend, server):
        entries = [
            {"token": "yes", "logprob": -1.0},
            {"token": "yes", "logprob": -2.0},
            {"token": "no", "logprob": -1.5},
        ]
        listed = {"content": [entries[0] | {"top_logprobs": entries}]}
        server.answers[CHAT] = Answer(completion("yes", logprobs=listed))
        assert backend.decide(noul()).error == "candidate_ambiguous"


def test_more_options_than_are_listed_or_there_are_symbols_are_not_sent(tmp_path: Path) -> None:
    narrow = Flavour("prompt only", "probabilities", "text", most=20)
    for flavour, most in ((narrow, 20), (VLLM, 52)):
        with served(flavour, tmp_path) as (backend, server):
            assert backend.decide(choice(most)).ok
            server.seen.clear()
            decision = backend.decide(choice(most + 1))
            assert (decision.error, decision.request) == ("too_many_options", None)
            assert server.seen == []


def test_a_chat_that_would_begin_with_a_thought_is_not_read(tmp_path: Path) -> None:
    prompt = "<|im_start|>user\nName one colour.<|im_end|>\n<|im_start|>assistant\n<think>\n"
    for route, ok in (("chat", False), ("completions", True)):
        with scripted_openai(LLAMA) as server:
            server.answers["/apply-template"] = lambda body: Answer(
                {"prompt": prompt.replace("Name one colour.", body["messages"][0]["content"])}
            )
            settings = logprobs_settings(base_url=server.url, route=route)
            backend = OpenAILogprobs(settings, model_identity()).open(tmp_path)
            decision = backend.decide(noul())
            assert decision.ok is ok
            if ok:
                sent = decision.request["sent"]["body"]["prompt"]
                assert sent.endswith("<think>\n</think>\n\n")
            else:
                assert decision.error == "thinking_open"
            backend.close()


@pytest.mark.parametrize(
    ("answer", "error", "status"),
    [
        (Answer({"error": {"message": "secret"}}, status=401), "http_error", 401),
        (Answer({"error": {"message": "secret"}}, status=422), "http_error", 422),
        (Answer({"error": {"message": "secret"}}, status=429), "http_error", 429),
        (Answer({"error": {"message": "secret"}}, status=500), "http_error", 500),
        (Answer({}, status=302, headers={"Location": "/elsewhere"}), "http_error", 302),
        (
            Answer({"error": {"type": "exceed_context_size_error"}}, status=400),
            "context_overflow",
            400,
        ),
        (Answer(hang=True), "timeout", None),
        (Answer(drop=True), "connection_failed", None),
        (Answer(b"<html>"), "bad_response", 200),
        (Answer({}), "bad_response", 200),
        (Answer(completion("yes")), "no_logprobs", 200),
        (Answer(completion("yes", logprobs={"content": []})), "no_logprobs", 200),
        (Answer(completion("yes", logprobs={"content": [{"token": "yes"}]})), "no_logprobs", 200),
    ],
)  # fmt: skip
@pytest.mark.parametrize("flavour", [LLAMA, VLLM], ids=["llama.cpp", "vLLM"])
def test_a_failing_answer_is_a_code(
    tmp_path: Path, flavour: Flavour, answer: Answer, error: str, status: int | None
) -> None:
    with served(flavour, tmp_path) as (backend, server):
        server.answers[COMPLETIONS] = answer
        decision = backend.decide(noul())
        assert (decision.ok, decision.error, decision.status_code) == (False, error, status)
        assert decision.probs is None
        assert decision.model == MODEL
        assert decision.request["sent"]["endpoint"] == COMPLETIONS
        assert len(dumps(decision.response)) < 5000
        # Only an answer without a list is asked for differently.
        again = flavour is LLAMA and error == "no_logprobs"
        assert server.paths().count(COMPLETIONS) == (2 if again else 1)


@pytest.mark.parametrize("endpoint", ["/apply-template", "/tokenize"])
def test_a_failure_on_the_way_to_the_answer_is_one_too(tmp_path: Path, endpoint: str) -> None:
    for answer, error in (
        (Answer({}, status=500), "http_error"),
        (Answer({"prompt": 3, "tokens": "abc"}), "bad_response"),
        (Answer(drop=True), "connection_failed"),
    ):
        with served(LLAMA, tmp_path) as (backend, server):
            server.answers[endpoint] = answer
            decision = backend.decide(noul())
            assert (decision.ok, decision.error) == (False, error)
            assert COMPLETIONS not in server.paths()


def test_options_are_added_and_fields_removed(tmp_path: Path) -> None:
    changes = {"options": {"top_k": -1}, "remove": ("chat_template_kwargs",)}
    with served(SGLANG, tmp_path, **changes) as (backend, server):
        decision = backend.decide(noul())
        sent = server.seen[-1].body
        assert sent["top_k"] == -1
        assert "chat_template_kwargs" not in sent
        assert decision.request["sent"]["body"] == sent
        readout = backend.describe()["readout"]
        assert (readout["options"], readout["remove"]) == (
            {"top_k": -1},
            ["chat_template_kwargs"],
        )


def test_a_key_that_the_server_repeats_is_in_no_evidence(tmp_path: Path, key: str) -> None:
    with served(VLLM, tmp_path, key_env="TEST_KEY") as (backend, server):
        for answer in (
            Answer(completion("yes") | {"echo": f"Bearer {key}"}),
            Answer({"error": {"message": f"no such key: {key}"}}, status=401),
            Answer(f"<html>{key}</html>".encode()),
        ):
            server.answers[COMPLETIONS] = answer
            decision = backend.decide(noul())
            assert not decision.ok
            assert key not in repr(decision)
        assert server.seen[-1].headers["Authorization"] == f"Bearer {key}"
        assert key not in dumps(backend.describe())


def test_yes_and_no_are_one_token_each_here() -> None:
    assert {YES, NO} < set(LOGITS)
