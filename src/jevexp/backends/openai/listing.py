"""The tokens that an answer lists with their log-probabilities, in each of the known shapes.

A chat completion, and also llama.cpp's completion:

    "logprobs": {"content": [{"token": …, "logprob": …, "top_logprobs": [{"token": …, …}, …]}]}

with `prob` and `top_probs` instead where llama.cpp reports what it sampled from. The older shape of
a completion:

    "logprobs": {"tokens": […], "token_logprobs": […], "top_logprobs": [{TOKEN: LOGPROB, …}]}
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_TOKEN_ID = re.compile(r"token_id:(\d+)")
# Rounding carries a probability of one past it.
_SLACK = 1e-3


@dataclass(frozen=True, slots=True)
class Entry:
    """One token: its id where the server says it, its text where it says that."""

    id: int | None
    text: str | None
    logprob: float


@dataclass(frozen=True, slots=True)
class Listing:
    """`sampled` is the predicted token, `entries` every token listed, that one among them."""

    sampled: Entry
    entries: tuple[Entry, ...]

    @property
    def has_ids(self) -> bool:
        """Whether every token comes with its id."""
        return all(entry.id is not None for entry in self.entries)

    def find(self, token: int | None, text: str) -> float | None:
        """The log-probability of a token; None where it is not listed.

        Raises:
            ValueError: several listed tokens are spelled alike.
        """
        if self.has_ids and token is not None:
            found = {entry.logprob for entry in self.entries if entry.id == token}
        else:
            found = {entry.logprob for entry in self.entries if entry.text == text}
        if len(found) > 1:
            raise ValueError("listed twice")
        return next(iter(found), None)


def listing(choice: Mapping[str, Any]) -> Listing:
    """What the first predicted token of a choice comes with.

    Raises:
        ValueError: there is no list, or one that cannot be.
    """
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict):
        raise ValueError("no logprobs")
    if "content" in logprobs:
        first = _first(logprobs["content"])
        listed = first.get("top_logprobs", first.get("top_probs"))
        if not isinstance(listed, list) or not listed:
            raise ValueError("no top_logprobs")
        sampled, others = _entry(first), [_entry(part) for part in listed]
    else:
        sampled = _named(
            _first(logprobs.get("tokens"), str), _first(logprobs.get("token_logprobs"), float)
        )
        top = _first(logprobs.get("top_logprobs"))
        others = [_named(token, logprob) for token, logprob in top.items()]
    return Listing(sampled, tuple(_distinct([*others, sampled])))


def _distinct(entries: Iterable[Entry]) -> Iterable[Entry]:
    """The sampled token is often among the others, and then the same."""
    seen = set()
    for entry in entries:
        key = (entry.id, entry.text, round(entry.logprob, 4))
        if key not in seen:
            seen.add(key)
            yield entry


def _first(values: Any, kind: type = dict) -> Any:
    if not isinstance(values, list) or not values or not isinstance(values[0], kind):
        raise ValueError("logprobs of another shape")
    return values[0]


def _entry(part: Any) -> Entry:
    if not isinstance(part, dict):
        raise ValueError("something else than a token is listed")
    token = part.get("id")
    named = _named(part.get("token"), _logprob(part))
    return Entry(token if type(token) is int else named.id, named.text, named.logprob)


def _named(token: Any, logprob: Any) -> Entry:
    if not isinstance(token, str):
        raise ValueError("a token without a text")
    value = _checked(logprob)
    if match := _TOKEN_ID.fullmatch(token):
        return Entry(int(match[1]), None, value)
    return Entry(None, token, value)


def _logprob(part: Mapping[str, Any]) -> Any:
    prob = part.get("prob")
    if "logprob" in part or isinstance(prob, bool) or not isinstance(prob, int | float):
        return part.get("logprob")
    if not 0 <= prob <= 1 + _SLACK:
        raise ValueError("a probability out of range")
    return math.log(prob) if prob > 0 else -math.inf


def _checked(logprob: Any) -> float:
    if isinstance(logprob, bool) or not isinstance(logprob, int | float):
        raise ValueError("a token without a probability")
    if not logprob <= _SLACK:
        raise ValueError("a log-probability above zero")
    return float(logprob)
