"""Every shape in which servers list tokens, and none that cannot be."""

import math
from typing import Any

import pytest

from jevexp.backends.openai.client import listing
from jevexp.backends.readout import Candidate, Listing

A = {"token": "A", "logprob": -0.5}
B = {"token": "B", "logprob": -1.5}


def chat(first: Any, *listed: Any, name: str = "top_logprobs") -> dict[str, Any]:
    return {"logprobs": {"content": [first | {name: list(listed)}]}}


def legacy(tokens: Any, logprobs: Any, top: Any) -> dict[str, Any]:
    return {"logprobs": {"tokens": tokens, "token_logprobs": logprobs, "top_logprobs": top}}


def logprob(found: Listing, token: int | None, text: str) -> float | None:
    entry = found.find(Candidate(text, token))
    return entry.logprob if entry else None


def test_a_chat_s_list_is_by_text() -> None:
    found = listing(chat(A, A, B))
    assert (logprob(found, None, "A"), logprob(found, 7, "B"), logprob(found, None, "C")) == (
        -0.5,
        -1.5,
        None,
    )
    assert not found.has_ids


def test_a_sampled_token_counts_though_it_is_not_among_the_others() -> None:
    found = listing(chat(B, A))
    assert found.sampled is not None
    assert found.sampled.text == "B"
    assert logprob(found, None, "B") == -1.5


def test_ids_are_read_where_they_are_given() -> None:
    found = listing(chat(A | {"id": 1}, A | {"id": 1}, A | {"id": 2, "logprob": -3.0}))
    assert found.has_ids
    assert (logprob(found, 1, "?"), logprob(found, 2, "?")) == (-0.5, -3.0)
    spelled = {"token": "token_id:12", "logprob": -0.5}
    assert logprob(listing(chat(spelled, spelled)), 12, "?") == -0.5


def test_probabilities_are_read_like_their_logarithms() -> None:
    first = {"id": 1, "token": "A", "prob": 0.25}
    found = listing(chat(first, first, {"id": 2, "token": "B", "prob": 0}, name="top_probs"))
    assert logprob(found, 1, "A") == math.log(0.25)
    assert logprob(found, 2, "B") == -math.inf


def test_the_older_shape_of_a_completion_is_read() -> None:
    found = listing(legacy(["B"], [-1.5], [{"A": -0.5}]))
    assert (logprob(found, None, "A"), logprob(found, None, "B")) == (-0.5, -1.5)
    assert logprob(listing(legacy(["token_id:3"], [-1.0], [{"token_id:3": -1.0}])), 3, "") == -1.0


def test_tokens_that_are_spelled_alike_are_not_told_apart() -> None:
    with pytest.raises(ValueError, match="twice"):
        logprob(listing(chat(A, A, A | {"logprob": -2.0})), None, "A")


@pytest.mark.parametrize(
    "choice",
    [
        {},
        {"logprobs": None},
        {"logprobs": {"content": None}},
        {"logprobs": {"content": [3]}},
        {"logprobs": {"content": [A]}},
        chat(A),
        chat(A, 3),
        chat(A, {"token": "A"}),
        chat(A, {"logprob": -1}),
        chat(A, A | {"logprob": "-1"}),
        chat(A, A | {"logprob": True}),
        chat(A, A | {"logprob": 0.5}),
        chat(A, {"token": "A", "prob": 1.5}, name="top_probs"),
        chat(A, {"token": "A", "prob": -0.5}, name="top_probs"),
        legacy([], [-1.5], [{"A": -0.5}]),
        legacy(["A"], [None], [{"A": -0.5}]),
        legacy(["A"], [-1.5], [None]),
        legacy(["A"], [-1.5], None),
        legacy(["A"], [-1.5], [{"A": "x"}]),
    ],
)
def test_a_list_that_cannot_be_is_refused(choice: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        listing(choice)
