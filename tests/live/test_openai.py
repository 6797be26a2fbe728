"""Both OpenAI-compatible providers on llama.cpp's own OpenAI routes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import jevexp.datasets
from jevexp.backends.openai.chat import OpenAIChat
from jevexp.backends.openai.logprobs import OpenAILogprobs
from jevexp.core.decision import ProbsSource, Request
from jevexp.core.task import Task
from jevexp.datasets import load_tasks
from jevexp.harness.scoring import score as scored
from tests.live.conftest import Live
from tests.support.llama import choice, model_identity, noul, score
from tests.support.openai import chat_settings, logprobs_settings
from tests.support.proxy import proxying

pytestmark = pytest.mark.live

DEMO = Path(jevexp.datasets.__file__).with_name("demo.jsonl")
QUESTIONS = [
    noul(),
    choice(3),
    choice(26),
    choice(52),
    score(4),
    score(11),
    noul("<|im_end|>\n<bos> x"),
]


def demo_tasks() -> list[Task]:
    """Of each kind the shortest task with the fewest labels."""
    tasks = sorted(load_tasks(DEMO), key=lambda task: (-len(task.labels), -len(str(task.state))))
    return list({task.kind: task for task in tasks}.values())


@contextmanager
def opened(url: str, folder: Path, **settings: Any) -> Iterator[OpenAILogprobs]:
    own = logprobs_settings(base_url=url, **settings)
    backend = OpenAILogprobs(own, model_identity(alias="live")).open(folder)
    try:
        yield backend
    finally:
        backend.close()


# openai_logprobs


def test_its_distributions_are_llama_cpp_s(live: Live, tmp_path: Path) -> None:
    asked = [Request.of(task, "live") for task in demo_tasks()]
    # Long prompts take a model of this size a while.
    asked += QUESTIONS if live.backend.describe()["n_vocab"] < 1000 else [score(11)]
    with opened(live.url, tmp_path) as backend:
        described, other = backend.describe(), live.backend.describe()
        for name in ("prompt_version", "template_kwargs", "model"):
            assert described[name] == other[name]
        for request in asked:
            mine, theirs = backend.decide(request), live.backend.decide(request)
            assert mine.ok, mine
            assert mine.probs == pytest.approx(theirs.probs, abs=1e-4)
            assert mine.usage == theirs.usage
            assert mine.runtime is not None
            assert theirs.runtime is not None
            off = theirs.runtime["off_option_mass"]
            assert mine.runtime["off_option_mass"] == pytest.approx(off, abs=1e-3)
            for name in ("prompt_sha256", "candidates"):
                assert mine.request["sent"][name] == theirs.request["sent"][name]


def test_its_features_are_those_of_this_server(live: Live, tmp_path: Path) -> None:
    with opened(live.url, tmp_path) as backend:
        found = backend.describe()["features"]
    assert found["route"] == "completions"
    assert (found["tokenize"], found["chat_template_rendering"]) == ("llama.cpp", "llama.cpp")
    assert (found["tokens"], found["logit_bias"]) == ("id", "probabilities")
    assert found["max_top_logprobs"] == 64
    assert found["extra_fields"]["post_sampling_probs"] is True


def test_by_chat_it_is_the_same_where_the_server_computes_the_same(
    tiny: Live, tmp_path: Path
) -> None:
    with opened(tiny.url, tmp_path, route="chat") as backend:
        for request in QUESTIONS:
            probs = backend.decide(request).probs
            assert probs == pytest.approx(tiny.backend.decide(request).probs, abs=1e-4)


def test_a_predicted_token_that_is_no_text_loses_no_answer(tiny: Live, tmp_path: Path) -> None:
    # Half of this vocabulary is a byte of something longer, which llama.cpp lists nothing for.
    asked = [noul(f"state {number}") for number in range(20)]
    with opened(tiny.url, tmp_path, readout={"bias": 1e-3, "top_logprobs": 64}) as backend:
        decisions = [backend.decide(request) for request in asked]
    assert all(decision.ok for decision in decisions)
    firsts = [decision.response["body"]["choices"][0] for decision in decisions]
    assert any(not choice.get("logprobs") for choice in firsts)
    expected = [tiny.backend.decide(request).probs for request in asked]
    assert [decision.probs for decision in decisions] == [
        pytest.approx(probs, abs=1e-4) for probs in expected
    ]


def test_by_chat_it_equals_the_llama_cpp_provider_too(gemma: Live, tmp_path: Path) -> None:
    # Of a server without checkpoints; with them, a sliding window cuts the two prompts differently.
    with opened(gemma.url, tmp_path, route="chat") as backend:
        mine, theirs = backend.decide(noul()), gemma.backend.decide(noul())
        assert mine.probs == pytest.approx(theirs.probs, abs=1e-4)
        assert mine.request["sent"]["candidates"] == theirs.request["sent"]["candidates"]
        assert mine.usage == theirs.usage


def test_without_llama_cpp_s_own_fields_missing_candidates_are_forced(
    gemma: Live, tmp_path: Path
) -> None:
    # As on servers that report probabilities from before the bias.
    with opened(gemma.url, tmp_path, remove=("post_sampling_probs",)) as backend:
        assert backend.describe()["features"]["logit_bias"] == "sampling"
        mine, theirs = backend.decide(noul()), gemma.backend.decide(noul())
        assert mine.ok, mine
        assert (mine.runtime or {})["requests"] > 1
        assert mine.probs == pytest.approx(theirs.probs, abs=1e-4)


def test_a_state_beyond_the_context_is_a_failure_of_its_own(tiny: Live, tmp_path: Path) -> None:
    with opened(tiny.url, tmp_path) as backend:
        decision = backend.decide(noul("too long " * 1000))
        assert (decision.error, decision.status_code) == ("context_overflow", 400)
        assert backend.decide(noul()).ok


def test_a_router_is_told_the_model_in_every_request(
    tiny: Live, gemma: Live, tmp_path: Path
) -> None:
    with proxying({"small": tiny.url, "large": gemma.url}) as router:
        for name, live in (("small", tiny), ("large", gemma)):
            backend = OpenAILogprobs(
                logprobs_settings(base_url=router.url), model_identity(alias=name)
            ).open(tmp_path)
            request = Request(noul().state, noul().question, name)
            assert backend.decide(request).probs == pytest.approx(
                live.backend.decide(noul()).probs, abs=1e-4
            )
            assert backend.describe()["model"] == name
            backend.close()
        assert {model for path, model in router.passed if path != "/v1/models"} == {
            "small",
            "large",
        }


# openai_chat


def test_the_grammar_holds_a_base_model_to_the_object(gemma: Live, tmp_path: Path) -> None:
    settings = chat_settings(base_url=gemma.url, max_tokens=512)
    backend = OpenAIChat(settings, model_identity(alias="live")).open(tmp_path)
    for task in demo_tasks():
        decision = backend.decide(Request.of(task, "live"))
        # What it writes is no distribution, which is for the scoring to say, not for the provider.
        assert decision.ok, decision
        assert decision.probs is not None
        assert list(decision.probs) == list(task.question.options)
        assert decision.probs_source is ProbsSource.VERBALIZED
        assert decision.model == "live"
        text = decision.response["body"]["choices"][0]["message"]["content"]
        assert json.loads(text) == {"probabilities": decision.probs}
        assert (decision.usage["output_tokens"] or 0) > 5
        scored(task, decision)
    backend.close()


def test_an_answer_that_is_cut_off_is_no_answer(gemma: Live, tmp_path: Path) -> None:
    settings = chat_settings(base_url=gemma.url, max_tokens=5)
    backend = OpenAIChat(settings, model_identity(alias="live")).open(tmp_path)
    decision = backend.decide(noul())
    assert (decision.ok, decision.error, decision.status_code) == (False, "truncated", 200)
    backend.close()


def test_without_the_schema_prose_is_not_searched_for_an_answer(
    gemma: Live, tmp_path: Path
) -> None:
    settings = chat_settings(base_url=gemma.url, max_tokens=24, remove=("response_format",))
    backend = OpenAIChat(settings, model_identity(alias="live")).open(tmp_path)
    decision = backend.decide(noul())
    assert not decision.ok
    assert decision.error in ("not_json", "bad_answer", "truncated")
    backend.close()
