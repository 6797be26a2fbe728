"""The readout's arithmetic against distributions that are known in full."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jevexp.backends.llama_cpp.client import listed_tokens
from jevexp.backends.readout import (
    Candidate,
    Candidates,
    Entry,
    Listing,
    Readout,
    logprob_of,
    read_biased,
    read_unbiased,
)
from jevexp.backends.transport import Failure


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


@pytest.mark.parametrize(
    ("total", "mass"), [(1.0000009, 1.0), (1.0000011, None), (1.0099, None), (1.0101, "refused")]
)
def test_where_unbiased_probabilities_stop_telling_the_mass(total: float, mass: Any) -> None:
    logprobs = [math.log(total / 4), math.log(3 * total / 4)]
    if mass == "refused":
        with pytest.raises(ValueError, match="out of range"):
            read_unbiased(logprobs)
    else:
        found = read_unbiased(logprobs)
        assert found.shares == pytest.approx((0.25, 0.75))
        assert (found.candidate_mass, found.off_option_mass) == (mass, None if mass is None else 0)


@pytest.mark.parametrize(("total", "told"), [(1.0000009, True), (1.0000011, False)])
def test_where_biased_probabilities_stop_telling_the_mass(total: float, told: bool) -> None:
    assert (read_biased([total / 4, 3 * total / 4], 12.0).candidate_mass is not None) is told


def test_a_candidate_that_cannot_be_is_nothing_and_not_an_error() -> None:
    assert read_unbiased([-math.inf, math.log(0.5)]).shares == (0.0, 1.0)
    assert read_biased([0.0, 0.5], 12.0).shares == (0.0, 1.0)


def test_the_logarithm_of_a_listed_probability() -> None:
    assert [logprob_of(value) for value in (0, 1)] == [-math.inf, 0.0]
    assert logprob_of(1.001) == math.log(1.001)
    for value in (-1e-12, 1.0011):
        with pytest.raises(ValueError, match="a probability out of range"):
            logprob_of(value)


def test_a_token_is_known_by_its_id_where_every_one_has_one_else_by_its_text() -> None:
    yes, no = Entry(1, "yes", -0.5, 0.6), Entry(2, "no", -1.0)
    known = Listing((yes, no), sampled=yes)
    assert known.find(Candidate("other", 1)) is yes
    assert known.find(Candidate("yes", 3)) is None
    assert known.find(Candidate("no", None)) is no
    assert known.predicts(Candidate("other", 1))
    assert not known.predicts(Candidate("yes", 2))
    assert (yes.probability, no.probability) == (0.6, math.exp(-1.0))
    texts = Listing((Entry(None, "yes", -0.5), no), sampled=Entry(1, "yes", -0.5))
    assert texts.find(Candidate("no", 9)) is no
    assert texts.find(Candidate("other", 2)) is None
    assert texts.predicts(Candidate("yes", 9))
    assert not texts.predicts(Candidate("no", 1))
    assert not Listing((yes, no)).predicts(Candidate("yes", 1))
    twice = Listing((yes, Entry(1, "yes", -0.5)))
    assert twice.find(Candidate("yes", 1)) is yes
    with pytest.raises(ValueError, match="listed twice"):
        Listing((yes, Entry(1, "yes", -0.6))).find(Candidate("yes", 1))


def test_ids_are_asked_for_once_where_a_control_token_cuts_the_prompt() -> None:
    asked: list[tuple[str, bool]] = []

    def tokens(text: str, *, special: bool = True) -> list[int]:
        asked.append((text, special))
        if special:
            text = text.replace("<|>", "\0")
        return [ord(letter) for letter in text]

    candidates = Candidates(tokens)
    assert candidates.ids("one<|>", "<|>", ["A", "B"]) == (65, 66)
    assert asked == [
        ("<|>", True), ("<|>", False), ("one<|>", True), ("one<|>A", True), ("one<|>B", True),
    ]  # fmt: skip
    # With the same fixed end nothing depends on the rest of the prompt.
    assert candidates.ids("two<|>", "<|>", ["A", "B"]) == (65, 66)
    assert len(asked) == 5
    # Without a control token the prompt's last token has to be known, one request each.
    assert candidates.ids("three", "", ["A"]) == (65,)
    assert candidates.ids("more e", "", ["A"]) == (65,)
    assert asked[5:] == [("three", True), ("threeA", True), ("more e", True)]
    assert candidates.ids("other", "", ["A"]) == (65,)
    assert len(asked) == 10


@pytest.mark.parametrize(
    ("added", "symbols"),
    [({"A": [7, 8]}, "A"), ({"A": []}, "A"), ({"A": [7], "B": [7]}, "AB"), ({"A": None}, "A")],
)
def test_what_is_not_one_token_of_its_own_is_no_candidate(
    added: dict[str, list[int] | None], symbols: str
) -> None:
    def tokens(text: str, *, special: bool = True) -> list[int]:
        del special
        if text[-1] not in added:
            return [1, 2]
        more = added[text[-1]]
        # None: the symbol joins what stands before it.
        return [1, 3, 4] if more is None else [1, 2, *more]

    with pytest.raises(Failure) as raised:
        Candidates(tokens).ids("p", "", symbols)
    assert raised.value.code == "candidate_not_one_token"
