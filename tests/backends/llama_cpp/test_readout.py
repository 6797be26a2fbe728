"""The readout's arithmetic against distributions that are known in full."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jevexp.backends.llama_cpp.readout import completion_body, read


def biased(logits: list[float], candidates: int, bias: float, listed: int) -> dict[str, Any]:
    """What a server answers whose vocabulary is `logits`, the first ones being candidates."""
    raised = [logit + (bias if token < candidates else 0) for token, logit in enumerate(logits)]
    top = max(raised)
    weights = [math.exp(logit - top) for logit in raised]
    total = math.fsum(weights)
    probs = sorted(((w / total, token) for token, w in enumerate(weights)), reverse=True)
    entries = [{"id": token, "prob": prob} for prob, token in probs[:listed]]
    return {"completion_probabilities": [{"top_probs": entries}]}


@given(
    st.lists(st.floats(-8, 8), min_size=8, max_size=40),
    st.integers(1, 6),
    st.floats(1, 16),
)
def test_shares_and_mass_are_those_of_the_whole_distribution(
    logits: list[float], candidates: int, bias: float
) -> None:
    weights = [math.exp(logit) for logit in logits]
    chosen = math.fsum(weights[:candidates])
    found = read(biased(logits, candidates, bias, len(logits)), range(candidates), bias)
    assert found is not None
    assert found.shares == pytest.approx([w / chosen for w in weights[:candidates]], rel=1e-9)
    assert math.fsum(found.shares) == pytest.approx(1, abs=1e-12)
    assert found.candidate_mass == pytest.approx(chosen / math.fsum(weights), abs=1e-6)
    assert found.off_option_mass == pytest.approx(1 - chosen / math.fsum(weights), abs=1e-6)


def test_a_candidate_that_is_not_listed_is_told() -> None:
    assert read(biased([0.0, -9.0, 5.0], 2, 1.0, 2), [0, 1], 1.0) is None


def test_a_bias_that_hides_the_mass_leaves_it_unknown() -> None:
    found = read(biased([0.0, 1.0, 5.0], 2, 100.0, 3), [0, 1], 100.0)
    assert found is not None
    assert (found.candidate_mass, found.off_option_mass) == (None, None)


def test_rounding_past_one_is_no_negative_mass() -> None:
    entries = [{"id": 0, "prob": 0.5000001}, {"id": 1, "prob": 0.5000001}]
    found = read({"completion_probabilities": [{"top_probs": entries}]}, [0, 1], 12.0)
    assert found is not None
    assert (found.candidate_mass, found.off_option_mass) == (1.0, 0.0)


def test_every_candidate_gets_the_same_bias_and_a_place_in_the_list() -> None:
    body = completion_body("prompt", [5, 9], 12.0, 4)
    assert body["logit_bias"] == [[5, 12.0], [9, 12.0]]
    assert body["n_probs"] == 6
