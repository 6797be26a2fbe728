"""The readout's arithmetic against distributions that are known in full."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jevexp.backends.llama_cpp.client import listed_tokens
from jevexp.backends.readout import Candidate, Readout, read_biased, read_unbiased


def biased(logits: list[float], candidates: int, bias: float, listed: int) -> dict[str, Any]:
    """What a llama.cpp server answers whose vocabulary is `logits`, the first ones candidates."""
    raised = [logit + (bias if token < candidates else 0) for token, logit in enumerate(logits)]
    top = max(raised)
    weights = [math.exp(logit - top) for logit in raised]
    total = math.fsum(weights)
    probs = sorted(((w / total, token) for token, w in enumerate(weights)), reverse=True)
    entries = [{"id": token, "prob": prob} for prob, token in probs[:listed]]
    return {"completion_probabilities": [{"top_probs": entries}]}


def read(body: dict[str, Any], ids: range, bias: float) -> Readout | None:
    """The readout of a completion; None when a candidate is not in the list."""
    listing = listed_tokens(body)
    entries = [listing.find(Candidate("?", token)) for token in ids]
    known = [entry.probability for entry in entries if entry]
    return read_biased(known, bias) if len(known) == len(entries) else None


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
    assert read(biased([0.0, -9.0, 5.0], 2, 1.0, 2), range(2), 1.0) is None


@pytest.mark.parametrize(("bias", "known"), [(12.0, True), (20.0, True), (20.5, False)])
def test_a_bias_that_hides_the_mass_leaves_it_unknown(bias: float, known: bool) -> None:
    found = read(biased([0.0, 1.0, 5.0], 2, bias, 3), range(2), bias)
    assert found is not None
    assert (found.candidate_mass is not None) is known
    assert (found.off_option_mass is not None) is known


def test_what_single_precision_is_off_by_is_no_negative_mass() -> None:
    found = read_biased([0.5000001, 0.5000001], 12.0)
    assert (found.candidate_mass, found.off_option_mass) == (1.0, 0.0)


@pytest.mark.parametrize("total", [1.00001, 1.0004, 1.0009])
@pytest.mark.parametrize("bias", [1.0, 12.0, 20.0])
def test_a_sum_past_one_does_not_tell_what_is_outside(total: float, bias: float) -> None:
    found = read_biased([total / 4, 3 * total / 4], bias)
    assert found.shares == pytest.approx((0.25, 0.75), abs=1e-12)
    assert (found.candidate_mass, found.off_option_mass) == (None, None)


@pytest.mark.parametrize("total", [1.0011, 1.05, 2.0, 0.0, -0.5, math.nan])
def test_a_sum_that_no_distribution_has_is_refused(total: float) -> None:
    with pytest.raises(ValueError, match="out of range"):
        read_biased([total / 4, 3 * total / 4], 12.0)


def test_unbiased_log_probabilities_give_their_softmax_and_their_mass() -> None:
    found = read_unbiased([math.log(0.6), math.log(0.2)])
    assert found.shares == pytest.approx((0.75, 0.25), abs=1e-12)
    assert found.candidate_mass == pytest.approx(0.8)
    assert found.off_option_mass == pytest.approx(0.2)


def test_unbiased_probabilities_past_one_do_not_tell_what_is_outside() -> None:
    found = read_unbiased([math.log(0.504), math.log(0.5)])
    assert (found.candidate_mass, found.off_option_mass) == (None, None)
    with pytest.raises(ValueError, match="out of range"):
        read_unbiased([math.log(0.52), math.log(0.5)])
    with pytest.raises(ValueError, match="out of range"):
        read_unbiased([-math.inf, -math.inf])
