"""The readout against the full next-token distribution of the same prompt, on real servers."""

import math
from functools import partial

import pytest

from jevexp.backends.llama_cpp.client import tokenize
from jevexp.backends.prompt import message
from jevexp.backends.readout import Candidates
from jevexp.backends.transport import Transport
from jevexp.core.decision import Decision, Request
from tests.live.conftest import Live
from tests.support.llama import choice, noul, score

pytestmark = pytest.mark.live

QUESTIONS = {
    "noul": noul(),
    "2 options": choice(2),
    "26 options": choice(26),
    "52 options": choice(52),
    "10 levels": score(10),
}
# Where the prompt may end in something that a symbol could join.
STATES = ["", "x", "yes", "A", "1 2 3", "tab\t", "line\n", "<|im_start|>", "né", "漢字", "🙂", "  "]


def full_distribution(live: Live, decision: Decision) -> dict[int, float]:
    """Token id to probability over the whole vocabulary, as the server computes it unasked.

    The bias only decides which token is predicted, as probabilities from before the sampling do
    not know of it: one that is no text on its own would end in an error.
    """
    sent = decision.request["sent"]
    some_id = next(iter(sent["candidates"].values()))["id"]
    body = {
        "prompt": sent["body"]["prompt"],
        "n_predict": 1,
        "cache_prompt": False,
        "temperature": 1.0,
        "samplers": ["temperature"],
        "logit_bias": [[some_id, 100.0]],
        "n_probs": live.backend.describe()["n_vocab"],
    }
    reply = live.client.post("/completion", json=body).raise_for_status().json()
    entries = reply["completion_probabilities"][0]["top_logprobs"]
    return {entry["id"]: math.exp(entry["logprob"]) for entry in entries}


@pytest.mark.parametrize("request_", QUESTIONS.values(), ids=QUESTIONS)
def test_probabilities_and_mass_are_those_of_the_full_distribution(
    live: Live, request_: Request
) -> None:
    decision = live.backend.decide(request_)
    assert decision.ok, decision
    assert decision.probs is not None
    assert list(decision.probs) == list(request_.question.options)
    assert math.fsum(decision.probs.values()) == pytest.approx(1, abs=1e-9)

    full = full_distribution(live, decision)
    assert len(full) == live.backend.describe()["n_vocab"]
    chosen = {
        label: full[candidate["id"]]
        for label, candidate in decision.request["sent"]["candidates"].items()
    }
    mass = math.fsum(chosen.values())
    expected = {label: value / mass for label, value in chosen.items()}
    assert decision.probs == pytest.approx(expected, abs=1e-5)
    readout = decision.response["readout"]
    assert readout["off_option_mass"] == pytest.approx(1 - mass, abs=1e-3)
    assert readout["candidate_mass"] == pytest.approx(mass, rel=2e-3, abs=1e-9)


@pytest.mark.parametrize("request_", QUESTIONS.values(), ids=QUESTIONS)
def test_remembered_candidates_are_those_of_the_prompt_at_hand(
    live: Live, request_: Request
) -> None:
    transport = Transport(live.url, None, 5.0, 60.0)
    candidates = Candidates(partial(tokenize, transport, {}))
    for state in STATES:
        asked = message(Request(state, request_.question, "m"))
        turns = {"messages": [{"role": "user", "content": asked.content}]}
        prompt: str = live.client.post("/apply-template", json=turns).json()["prompt"]
        _, ending, after = prompt.rpartition(asked.ending)
        symbols = list(asked.symbols.values())
        ids = candidates.ids(prompt, ending + after, symbols)
        tokens = tokenized(live, prompt)
        # All of them for the first state; then whether they stay the same.
        for symbol, token in list(zip(symbols, ids, strict=True))[:: 1 if state == "" else 7]:
            assert tokenized(live, prompt + symbol) == [*tokens, token]
    transport.close()


def test_a_decision_does_not_depend_on_those_before_it(live: Live) -> None:
    first = live.backend.decide(noul())
    live.backend.decide(choice(26))
    live.backend.decide(noul("Another state, which shares the beginning of the prompt."))
    assert live.backend.decide(noul()).probs == first.probs


def test_the_symbols_order_is_the_criteria_s(tiny: Live) -> None:
    sent = tiny.backend.decide(choice(3)).request["sent"]
    assert [(label, part["text"]) for label, part in sent["candidates"].items()] == [
        ("topic 0", "A"),
        ("topic 1", "B"),
        ("topic 2", "C"),
    ]


def test_a_decision_names_its_model_and_counts_its_tokens(live: Live) -> None:
    decision = live.backend.decide(noul())
    assert decision.model == "live"
    assert decision.usage["output_tokens"] == 1
    prompt = decision.request["sent"]["body"]["prompt"]
    assert decision.usage["input_tokens"] == len(tokenized(live, prompt))
    assert decision.runtime is not None
    assert decision.runtime["timings"]["prompt_n"] == decision.usage["input_tokens"]


def test_a_state_beyond_the_context_is_a_failure_of_its_own(tiny: Live) -> None:
    decision = tiny.backend.decide(noul("too long " * 1000))
    assert (decision.ok, decision.error, decision.status_code) == (False, "context_overflow", 400)
    assert decision.response["body"]["error"]["type"] == "exceed_context_size_error"
    assert tiny.backend.decide(noul()).ok


def test_the_server_describes_itself(tiny: Live, gemma: Live) -> None:
    facts = tiny.backend.describe()
    assert (facts["n_ctx"], facts["n_ctx_train"], facts["n_embd"]) == (4096, 4096, 64)
    assert (facts["total_slots"], facts["model"]) == (1, "live")
    facts = gemma.backend.describe()
    assert facts["ftype"] == "Q4_K - Medium"
    assert facts["n_vocab"] == 262144


def tokenized(live: Live, text: str) -> list[int]:
    body = {"content": text, "add_special": True, "parse_special": True}
    tokens: list[int] = live.client.post("/tokenize", json=body).json()["tokens"]
    return tokens
