"""Which of the features that a distribution is read with a server has, found out by trying.

No task is needed for it: a harmless question is asked with different biases, and the answers are
compared. What a server merely accepts proves nothing, since most ignore what they do not know.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from jevexp.backends.next_token import CONTEXT, FORCING_BIAS, BiasReach, Prompt
from jevexp.backends.openai.client import Features, OpenAICompletions
from jevexp.backends.openai.connection import (
    LLAMA_CPP,
    VLLM,
    Renderer,
    find_renderer,
    find_tokenizer,
)
from jevexp.backends.prompt import without_thinking
from jevexp.backends.readout import Candidate, Candidates, Listing, Tokenizer
from jevexp.backends.transport import Failure, Transport
from jevexp.errors import InputError
from jevexp.settings import OpenAILogprobsBackend

PROBE = "Name one colour."
# Two words that are predicted by force, which also keeps tokens that are no text on their own, and
# which servers fail to show, out of the answers.
_WORDS = ("yes", "no")
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
        prompt = Prompt(PROBE, without_thinking(rendered) if rendered is not None else None)
        ids = _ids(self.tokenizer) if self.tokenizer else None
        best: Features | None = None
        refused: Failure | None = None
        for extras in _EXTRAS[self.family]:
            untried = Features(
                route, self.family, self.tokenizer, self.renderer, "text", BiasReach.UNTRIED,
                self.settings.readout.top_logprobs, extras,
            )  # fmt: skip
            probe = _Probe(self, untried, prompt, ids)
            try:
                features = probe.tried()
            except Failure as failure:
                if failure.status is None or failure.status in _FINAL:
                    raise
                refused = failure
                continue
            if best is None or _worth(features) > _worth(best):
                best = features
            if features.logit_bias is BiasReach.PROBABILITIES:
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
    """One way of asking; `ids` are the two words', where they are known."""

    server: _Server
    untried: Features
    prompt: Prompt
    ids: tuple[int, ...] | None

    def tried(self) -> Features:
        """What the server has when it is asked in this way.

        Raises:
            Failure: it answers no request of this kind.
        """
        top, listing = self._longest_list()
        reach = self._reach(top, listing)
        tokens = "id" if listing.has_ids else "text"
        features = replace(self.untried, tokens=tokens, logit_bias=reach)
        return replace(features, top=min(top, len(listing.entries)))

    def _longest_list(self) -> tuple[int, Listing]:
        """How many tokens the server agrees to list, and one such list.

        Raises:
            Failure: it agrees to no number.
        """
        wish = self.untried.top
        for top in (wish, *(fewer for fewer in _FEWER if fewer < wish)):
            try:
                return top, self._ask(top, FORCING_BIAS, FORCING_BIAS - _LESS)
            except Failure as failure:
                if failure.status not in _REFUSED:
                    raise
                refused = failure
        raise refused

    def _reach(self, top: int, listing: Listing) -> BiasReach:
        """How far a bias gets; `listing` came with more of it for the first word.

        Raises:
            Failure: the server does not answer at all.
        """
        if self.ids is None:
            return BiasReach.UNTRIED
        top = min(top, len(listing.entries))
        try:
            other = self._ask(top, FORCING_BIAS - _LESS, FORCING_BIAS)
            before, after = self._log_ratio(listing), self._log_ratio(other)
            # What the words themselves differ by cancels.
            if before is not None and after is not None and _is_moved(before - after):
                return BiasReach.PROBABILITIES
            forced = [self._ask(top, FORCING_BIAS, 0.0), self._ask(top, 0.0, FORCING_BIAS)]
        except Failure as failure:
            if failure.status is None:
                raise
            return BiasReach.IGNORED
        obeyed = [self._is_sampled(answer, word) for word, answer in enumerate(forced)]
        return BiasReach.SAMPLING if all(obeyed) and _agree(*forced) else BiasReach.IGNORED

    def _ask(self, top: int, *biases: float) -> Listing:
        server, features = self.server, replace(self.untried, top=top)
        client = OpenAICompletions(server.transport, server.settings, features)
        by_token = {
            token: bias for token, bias in zip(self.ids or (), biases, strict=False) if bias
        }
        body = client.body(self.prompt, server.model, by_token, None)
        return client.listing(client.post(body))

    def _log_ratio(self, listing: Listing) -> float | None:
        words = map(Candidate, _WORDS, self.ids or ())
        try:
            first, second = map(listing.find, words)
        except ValueError:
            return None
        return first.logprob - second.logprob if first and second else None

    def _is_sampled(self, listing: Listing, word: int) -> bool:
        if listing.sampled is None:
            return False
        if listing.has_ids:
            return self.ids is not None and listing.sampled.id == self.ids[word]
        return listing.sampled.text == _WORDS[word]


def _is_moved(log_ratio: float) -> bool:
    """Whether a ratio moved by what the two words' biases were exchanged by."""
    return abs(log_ratio - 2 * _LESS) < _TOLERANCE


def _agree(one: Listing, other: Listing) -> bool:
    """Whether two answers list one distribution, the predicted token's probability included."""
    known = {(entry.id, entry.text): entry.logprob for entry in one.entries}
    both = [
        (entry.logprob, known[entry.id, entry.text])
        for entry in other.entries
        if (entry.id, entry.text) in known
    ]
    masses = [math.fsum(entry.probability for entry in part.entries) for part in (one, other)]
    alike = all(abs(here - there) < _TOLERANCE for here, there in both)
    return bool(both) and alike and max(masses) < _MOST_MASS
