"""Which of the features that a distribution is read with a server has, found out by trying.

No task is needed for it: a harmless question is asked with different biases, and the answers are
compared. What a server merely accepts proves nothing, since most ignore what they do not know.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from jevexp.backends.candidates import Candidates, Tokenizer
from jevexp.backends.openai.asking import Asked, Asking
from jevexp.backends.openai.listing import Listing
from jevexp.backends.openai.native import (
    LLAMA_CPP,
    VLLM,
    Renderer,
    find_renderer,
    find_tokenizer,
)
from jevexp.backends.prompt import without_thinking
from jevexp.backends.transport import Failure, Transport
from jevexp.errors import InputError
from jevexp.settings import OpenAILogprobsBackend

PROBE = "Name one colour."
# The strongest bias that OpenAI's description allows.
FORCING_BIAS = 100.0
# Two words that are predicted by force, which also keeps tokens that are no text on their own, and
# which servers fail to show, out of the answers.
_WORDS = ("yes", "no")
# What the words are looked up after, and answers begin after: not a word that they could join.
CONTEXT = "\n"
# The bias that one word has less than the other, now this one, now that.
_LESS = 2.0
# Servers that batch requests do not repeat a log-probability to the last digit.
_TOLERANCE = 0.5
# Of one distribution, with some room for the same reason.
_MOST_MASS = 1.05
_FEWER = (20, 5)
_REFUSED = (400, 422)
# What no other way of asking changes.
_FINAL = (401, 403, 429)

# What llama.cpp reads beside OpenAI's fields: probabilities from after the bias, none of them cut
# off, nothing left over from an earlier prompt, and the same token predicted every time: what its
# own route is asked with.
_LLAMA_EXTRAS = {
    "post_sampling_probs": True,
    "samplers": ["top_k", "temperature"],
    "top_k": 1 << 16,
    "cache_prompt": False,
    "seed": 0,
}
_EXTRAS: dict[str | None, tuple[Mapping[str, Any], ...]] = {
    LLAMA_CPP: (_LLAMA_EXTRAS, {"cache_prompt": False, "seed": 0}),
    VLLM: ({"return_tokens_as_token_ids": True}, {}),
    None: ({},),
}


class BiasReach(StrEnum):
    """How far a `logit_bias` gets."""

    PROBABILITIES = "probabilities"
    """The listed probabilities are those after the bias."""
    SAMPLING = "sampling"
    """It decides which token is predicted; the listed probabilities are those before it."""
    IGNORED = "ignored"
    """It changes nothing."""
    UNTRIED = "untried"
    """No token's id is known, so that none could be given."""


@dataclass(frozen=True, slots=True)
class Features:
    """What was found.

    `family` is the kind of server by its tokenizer, `tokens` how the listed tokens are named, `top`
    how many of them come.
    """

    route: str
    family: str | None
    tokenizer: Tokenizer | None
    renderer: Callable[[str], str] | None
    tokens: str
    logit_bias: BiasReach
    top: int
    extras: Mapping[str, Any]

    def described(self) -> dict[str, Any]:
        """The findings as plain JSON."""
        return {
            "route": self.route,
            "tokenize": self.family if self.tokenizer else None,
            "chat_template_rendering": self.family if self.renderer else None,
            "tokens": self.tokens,
            "logit_bias": self.logit_bias.value,
            "max_top_logprobs": self.top,
            "extra_fields": dict(self.extras),
        }


def find_features(transport: Transport, settings: OpenAILogprobsBackend, model: str) -> Features:
    """Try the server.

    Raises:
        Failure: the server does not answer, or answers no request of this kind.
        InputError: the route needs what the server does not have.
    """
    route = {"model": model}
    kwargs = settings.template.kwargs
    family, tokenizer = find_tokenizer(transport, route)
    renderer = None
    if family is not None and tokenizer is not None:
        renderer = find_renderer(transport, family, tokenizer, kwargs, route, probe=PROBE)
    if settings.route == "completions" and renderer is None:
        raise InputError(
            "backend.route: the server renders no chat template for a completion; set "
            "backend.route=chat"
        )
    server = _Server(transport, settings, model, family, tokenizer, renderer)
    routes = (settings.route,) if settings.route else ("completions", "chat")
    refused: Failure | None = None
    for name in routes if renderer else ("chat",):
        try:
            return server.features(name)
        except Failure as failure:
            if failure.status is None or failure.status in _FINAL:
                raise
            refused = failure
    raise refused or Failure("no_logprobs")


@dataclass(frozen=True, slots=True)
class _Server:
    """What is known of the server before it is asked for a token."""

    transport: Transport
    settings: OpenAILogprobsBackend
    model: str
    family: str | None
    tokenizer: Tokenizer | None
    renderer: Renderer | None

    def features(self, route: str) -> Features:
        """What it can on a route, with the extra fields that get the most out of it.

        Raises:
            Failure: it answers no request of this kind.
        """
        rendered = self.renderer(PROBE) if self.renderer else None
        asked = Asked(PROBE, without_thinking(rendered) if rendered is not None else None)
        ids = _ids(self.tokenizer) if self.tokenizer else None
        best: Features | None = None
        refused: Failure | None = None
        for extras in _EXTRAS[self.family]:
            asking = Asking(
                self.transport, self.settings, route=route, family=self.family, extras=extras
            )
            probe = _Probe(asking, asked, self.model, ids)
            try:
                top, listed = probe.widest(self.settings.readout.top_logprobs)
            except Failure as failure:
                if failure.status is None or failure.status in _FINAL:
                    raise
                refused = failure
                continue
            reach = probe.reach(top, listed)
            named = "id" if listed.has_ids else "text"
            found = Features(
                route, self.family, self.tokenizer, self.renderer, named, reach, top, extras
            )
            if best is None or _worth(found) > _worth(best):
                best = found
            if reach is BiasReach.PROBABILITIES:
                break
        if best is None:
            raise refused or Failure("no_logprobs")
        return best


def _worth(features: Features) -> tuple[int, bool]:
    order = [BiasReach.UNTRIED, BiasReach.IGNORED, BiasReach.SAMPLING, BiasReach.PROBABILITIES]
    return order.index(features.logit_bias), features.tokens == "id"


def _ids(tokenizer: Tokenizer) -> tuple[int, ...] | None:
    """The two words' tokens; None where they are not one token each."""
    try:
        return Candidates(tokenizer).ids(CONTEXT, "", _WORDS)
    except Failure as failure:
        if failure.code == "candidate_not_one_token":
            return None
        raise


@dataclass(frozen=True, slots=True)
class _Probe:
    """One way of asking, tried; `ids` are the two words', where they are known."""

    asking: Asking
    asked: Asked
    model: str
    ids: tuple[int, ...] | None

    def widest(self, wish: int) -> tuple[int, Listing]:
        """The longest list that the server agrees to: how long it is, and one such list.

        Raises:
            Failure: it agrees to none.
        """
        for top in (wish, *(fewer for fewer in _FEWER if fewer < wish)):
            try:
                found = self._ask(top, FORCING_BIAS, FORCING_BIAS - _LESS)
            except Failure as failure:
                if failure.status not in _REFUSED:
                    raise
                refused = failure
                continue
            return min(top, len(found.entries)), found
        raise refused

    def reach(self, top: int, listed: Listing) -> BiasReach:
        """How far a bias gets; `listed` came with more of it for the first word.

        Raises:
            Failure: the server does not answer at all.
        """
        if self.ids is None:
            return BiasReach.UNTRIED
        try:
            other = self._ask(top, FORCING_BIAS - _LESS, FORCING_BIAS)
            before, after = self._log_ratio(listed), self._log_ratio(other)
            if before is not None and after is not None:
                # What the words themselves differ by cancels.
                moved = before - after
                if abs(moved - 2 * _LESS) < _TOLERANCE:
                    return BiasReach.PROBABILITIES
            forced = [self._ask(top, FORCING_BIAS, 0.0), self._ask(top, 0.0, FORCING_BIAS)]
        except Failure as failure:
            if failure.status is None:
                raise
            return BiasReach.IGNORED
        told = [self._is_sampled(answer, word) for word, answer in enumerate(forced)]
        return BiasReach.SAMPLING if all(told) and _agree(*forced) else BiasReach.IGNORED

    def _ask(self, top: int, *biases: float) -> Listing:
        given = zip(self.ids or (), biases, strict=False)
        bias = {token: value for token, value in given if value}
        return self.asking.ask(self.asking.body(self.asked, self.model, top, bias)).listing

    def _log_ratio(self, listed: Listing) -> float | None:
        ids = self.ids or ()
        try:
            first, second = map(listed.find, ids, _WORDS)
        except ValueError:
            return None
        return first - second if first is not None and second is not None else None

    def _is_sampled(self, listed: Listing, word: int) -> bool:
        if listed.has_ids:
            return self.ids is not None and listed.sampled.id == self.ids[word]
        return listed.sampled.text == _WORDS[word]


def _agree(one: Listing, other: Listing) -> bool:
    """Whether two answers list one distribution, the predicted token's probability included."""
    known = {(entry.id, entry.text): entry.logprob for entry in one.entries}
    both = [
        (entry.logprob, known[entry.id, entry.text])
        for entry in other.entries
        if (entry.id, entry.text) in known
    ]
    whole = [math.fsum(math.exp(entry.logprob) for entry in part.entries) for part in (one, other)]
    return bool(both) and all(abs(a - b) < _TOLERANCE for a, b in both) and max(whole) < _MOST_MASS
