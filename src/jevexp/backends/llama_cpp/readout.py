"""The distribution over the options, from one next-token distribution with a bias.

Adding the same B to the logit of every candidate leaves the ratios between candidates as they
are, so their probabilities divided by their sum are the softmax over the candidates. With s the
sum that the server reports and m the candidates' share without the bias,

    s = m·e^B / (m·e^B + 1 - m),  hence  m = s / (s + (1 - s)·e^B).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

READOUT_VERSION = "1"
# Strong enough to lift any candidate into the list; too strong to tell the mass outside them.
MISSING_BIAS = 100.0
# Ranking the whole of a large vocabulary takes the server as long as some models need for a short
# prompt. The tokens beyond these, which a candidate with a bias is never among, hold less than
# 1e-4 of the mass outside the candidates; vocabularies up to this size are read whole.
_RANKED = 1 << 16
# Above this bias, 1 - s drowns in the server's single precision.
_LARGEST_TELLING_BIAS = 20.0


@dataclass(frozen=True, slots=True)
class Readout:
    """`shares` are the candidates', in their order; the masses are of the whole vocabulary.

    Null masses are unknown.
    """

    shares: tuple[float, ...]
    candidate_mass: float | None
    off_option_mass: float | None


class NothingListedError(ValueError):
    """There is no list, as where a token was predicted that is no text on its own."""


def completion_body(prompt: str, ids: Sequence[int], bias: float, extra: int) -> dict[str, Any]:
    """The body of the `/completion` request."""
    return {
        "prompt": prompt,
        "n_predict": 1,
        # A reused prefix moves the probabilities between calls.
        "cache_prompt": False,
        "temperature": 1.0,
        "samplers": ["top_k", "temperature"],
        "top_k": _RANKED,
        "seed": 0,
        "logit_bias": [[token, bias] for token in ids],
        # Without this, the server reports probabilities from before the bias.
        "post_sampling_probs": True,
        "n_probs": len(ids) + extra,
    }


def read(body: dict[str, Any], ids: Sequence[int], bias: float) -> Readout | None:
    """The readout of a completion; None when a candidate is not in the list.

    Raises:
        NothingListedError: the body holds no list of probabilities.
        ValueError: it holds one that cannot be.
    """
    found = _probabilities(body)
    if any(token not in found for token in ids):
        return None
    return readout_of([found[token] for token in ids], bias)


def readout_of(values: Sequence[float], bias: float) -> Readout:
    """The readout of the candidates' probabilities, as they are with `bias`.

    Raises:
        ValueError: they cannot be probabilities.
    """
    total = math.fsum(values)
    if not 0 < total < 1 + 1e-3:
        raise ValueError("probabilities out of range")
    shares = tuple(value / total for value in values)
    if bias > _LARGEST_TELLING_BIAS:
        return Readout(shares, None, None)
    # Rounding may carry the sum a hair past one.
    outside = max(0.0, 1.0 - total) * math.exp(bias)
    return Readout(shares, total / (total + outside), outside / (total + outside))


def _probabilities(body: dict[str, Any]) -> dict[int, float]:
    """Token id to probability, of the first predicted token."""
    steps = body.get("completion_probabilities")
    if not steps:
        raise NothingListedError("no completion_probabilities")
    if not isinstance(steps, list) or not isinstance(steps[0], dict):
        raise ValueError("completion_probabilities of another shape")
    entries = steps[0].get("top_probs")
    if not isinstance(entries, list):
        raise ValueError("no top_probs")
    found = {}
    for entry in entries:
        token, value = (entry.get("id"), entry.get("prob")) if isinstance(entry, dict) else (0, "")
        if type(token) is not int or isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("top_probs holds something else than ids and probabilities")
        if not 0 <= value <= 1 + 1e-3:
            raise ValueError("a probability out of range")
        found[token] = float(value)
    return found
