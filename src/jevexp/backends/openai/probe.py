"""Which of the features that a distribution is read with a server has, found out by trying.

No task is needed for it: a harmless question is asked with and without a bias, and the answers are
compared. What a server merely accepts proves nothing, since most ignore what they do not know.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from jevexp.backends.candidates import Tokenizer
from jevexp.backends.openai.asking import Asked, Asking
from jevexp.backends.openai.listing import Entry, Listing
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
_BIAS = 12.0
# A bias that reaches the probabilities moves the log-odds by 12; single precision blurs them.
_TOLERANCE = 0.5
_FEWER = (20, 5)
_REFUSED = (400, 422)
# What no other way of asking changes.
_FINAL = (401, 403, 429)

# What llama.cpp reads beside OpenAI's fields: probabilities from after the bias, none of them cut
# off, and nothing left over from an earlier prompt. The same as its own route is asked with.
_LLAMA_EXTRAS = {
    "post_sampling_probs": True,
    "samplers": ["top_k", "temperature"],
    "top_k": 1 << 16,
    "cache_prompt": False,
}
_EXTRAS: dict[str | None, tuple[Mapping[str, Any], ...]] = {
    LLAMA_CPP: (_LLAMA_EXTRAS, {"cache_prompt": False}),
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
    renderer: Renderer | None
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
        best: Features | None = None
        refused: Failure | None = None
        for extras in _EXTRAS[self.family]:
            asking = Asking(
                self.transport, self.settings, route=route, family=self.family, extras=extras
            )
            probe = _Probe(asking, asked, self.model)
            try:
                top, plain = probe.widest(self.settings.readout.top_logprobs)
            except Failure as failure:
                if failure.status is None or failure.status in _FINAL:
                    raise
                refused = failure
                continue
            reach = probe.reach(top, plain, self.tokenizer)
            named = "id" if plain.has_ids else "text"
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


@dataclass(frozen=True, slots=True)
class _Probe:
    """One way of asking, tried."""

    asking: Asking
    asked: Asked
    model: str

    def widest(self, wish: int) -> tuple[int, Listing]:
        """The longest list that the server agrees to: how long it is, and one such list.

        Raises:
            Failure: it agrees to none.
        """
        for top in (wish, *(fewer for fewer in _FEWER if fewer < wish)):
            try:
                found = self._ask(top, {})
            except Failure as failure:
                if failure.status not in _REFUSED:
                    raise
                refused = failure
                continue
            return min(top, len(found.entries)), found
        raise refused

    def reach(self, top: int, plain: Listing, tokenizer: Tokenizer | None) -> BiasReach:
        """Give a listed token a bias, and see what comes of it; raises Failure on silence."""
        target = next(_with_id(plain, tokenizer), None)
        if target is None:
            return BiasReach.UNTRIED
        token, entry = target
        try:
            after = _find(self._ask(top, {token: _BIAS}), token, entry)
            if after is not None:
                moved = _log_odds(after) - _log_odds(entry.logprob)
                if abs(moved - _BIAS) < _TOLERANCE:
                    return BiasReach.PROBABILITIES
                if abs(moved) > _TOLERANCE:
                    return BiasReach.IGNORED
            sampled = self._ask(top, {token: FORCING_BIAS}).sampled
        except Failure as failure:
            if failure.status is None:
                raise
            return BiasReach.IGNORED
        same = sampled.id == token if plain.has_ids else sampled.text == entry.text
        told = abs(sampled.logprob - entry.logprob) < _TOLERANCE
        return BiasReach.SAMPLING if same and told else BiasReach.IGNORED

    def _ask(self, top: int, bias: Mapping[int, float]) -> Listing:
        return self.asking.ask(self.asking.body(self.asked, self.model, top, bias)).listing


def _with_id(plain: Listing, tokenizer: Tokenizer | None) -> Iterator[tuple[int, Entry]]:
    """Listed tokens that may be given a bias: unlikely enough to show it, their id known."""
    by_rank = sorted(plain.entries, key=lambda entry: -entry.logprob)
    for entry in by_rank[2:] + by_rank[1:2]:
        if not -10 < entry.logprob < -0.5:
            continue
        if entry.id is not None:
            yield entry.id, entry
        elif tokenizer is not None and entry.text is not None and entry.text.isalnum():
            before, whole = tokenizer("\n"), tokenizer("\n" + entry.text)
            if whole[:-1] == before:
                yield whole[-1], entry


def _find(listed: Listing, token: int, entry: Entry) -> float | None:
    try:
        return listed.find(token, entry.text or "")
    except ValueError:
        return None


def _log_odds(logprob: float) -> float:
    p = math.exp(logprob)
    return logprob - math.log1p(-min(p, 1 - 1e-9))
