"""Next-token probabilities, on any OpenAI-compatible server that lists them.

What a server can is found out by trying, when it is opened: a harmless question is asked with
different biases, and the answers are compared. What a server merely accepts proves nothing, since
most ignore what they do not know.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from jevexp.backends.connection import Connected, Connection, connect, unusable
from jevexp.backends.llama_cpp.client import UNCUT
from jevexp.backends.next_token import CONTEXT, FORCING_BIAS, BiasReach, Decider, Prompt
from jevexp.backends.openai.client import Features, OpenAICompletions, read_again
from jevexp.backends.openai.connection import (
    LLAMA_CPP,
    UNUSABLE,
    VLLM,
    code_of,
    find_model,
    find_tokenizer,
    render,
)
from jevexp.backends.prompt import PROMPT_VERSION, without_thinking
from jevexp.backends.readout import READOUT_VERSION, Candidate, Candidates, Listing, Tokenizer
from jevexp.backends.rereading import AnswerReader, RequestForm
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
# The most that one distribution sums to, with some room for the same reason.
_MOST_MASS = 1.05
_FEWER = (20, 5)
_REFUSED = (400, 422)
# What no other way of asking changes.
_FINAL = (None, 401, 403, 429)
# What llama.cpp reads beside OpenAI's fields is what its own route is asked with.
_EXTRAS: dict[str | None, tuple[Mapping[str, Any], ...]] = {
    LLAMA_CPP: (UNCUT, {"cache_prompt": False, "seed": 0}),
    VLLM: ({"return_tokens_as_token_ids": True}, {}),
    None: ({},),
}


def reader(settings: OpenAILogprobsBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads listed log-probabilities again, by the code that read them first."""
    return AnswerReader(
        lambda request, raw: read_again(settings, description, request, raw),
        request_form=RequestForm.COMPUTED,
    )


class OpenAILogprobs(Connected[OpenAILogprobsBackend]):
    """A model's own distribution, as far as the server shows it; see docs/reference/openai.md."""

    def _open(self, log_directory: Path) -> None:
        settings = self._settings
        connection = self._hold(connect(settings, log_directory, code_of=code_of))
        alias = self._model.alias
        model = find_model(connection, settings, alias)
        try:
            features = find_features(connection.transport, settings, alias)
        except Failure as failure:
            raise self._unreadable(connection, failure) from failure
        client = OpenAICompletions(connection.transport, settings, features)
        self._ask = Decider(client, model).decide
        self._facts |= {
            "model": model,
            "prompt_version": PROMPT_VERSION,
            "template_kwargs": dict(settings.template.kwargs),
            "readout": {
                "version": READOUT_VERSION,
                "route": features.route,
                **settings.readout.model_dump(),
                "options": dict(settings.options),
                "remove": list(settings.remove),
            },
            "features": features.described(),
        }

    def _unreadable(self, connection: Connection, failure: Failure) -> InputError:
        url = connection.base_url
        if failure.code in ("no_logprobs", "bad_response"):
            return InputError(
                f"backend.kind: {url} answers without log-probabilities; use backend=openai_chat, "
                "or another server"
            )
        if failure.status in (400, 404, 422):
            return InputError(
                f"backend.route: {url} refuses a short question for one token with logprobs (HTTP "
                f"{failure.status}); check model.alias={self._model.alias}, try the other route, "
                "or name fields that it does not know in backend.remove, such as "
                "[chat_template_kwargs]"
            )
        return unusable(failure, connection.url, *UNUSABLE, key_env=self._settings.key_env)


make = OpenAILogprobs


def find_features(transport: Transport, settings: OpenAILogprobsBackend, model: str) -> Features:
    """What the server has, on the first route that it answers, with the extra fields that help.

    Raises Failure where it answers no request of this kind, and InputError where the route needs
    what the server does not have.
    """
    family, tokenizer = find_tokenizer(transport, {"model": model})
    renderer, text = None, None
    if family is not None and tokenizer is not None:
        kwargs = settings.template.kwargs
        renderer = partial(render, transport, family, kwargs, {"model": model})
        try:
            text = renderer(PROBE)
            # A template is of use if the prompt that it makes holds together.
            if PROBE not in text or not tokenizer(text):
                renderer, text = None, None
        except Failure as failure:
            if failure.status is None:
                raise
            renderer, text = None, None
    if settings.route == "completions" and renderer is None:
        raise InputError(
            "backend.route: the server renders no chat template for a completion; set "
            "backend.route=chat"
        )
    routes = (settings.route,) if settings.route else ("completions", "chat")
    prompt = Prompt(PROBE, without_thinking(text) if text is not None else None)
    words = _words(tokenizer) if tokenizer else None
    refused = Failure("no_logprobs")
    for route in routes if renderer else ("chat",):
        answered = []
        for extras in _EXTRAS[family]:
            untried = Features(
                route, family, tokenizer, renderer, "text", BiasReach.UNTRIED,
                settings.readout.top_logprobs, extras,
            )  # fmt: skip
            try:
                features = _Probe(transport, settings, model, untried, prompt, words).tried()
            except Failure as failure:
                if failure.status in _FINAL:
                    raise
                refused = failure
                continue
            answered.append(features)
            if features.logit_bias is BiasReach.PROBABILITIES:
                break
        if answered:
            best = list(BiasReach)
            return min(answered, key=lambda way: (best.index(way.logit_bias), way.tokens != "id"))
    raise refused


def _words(tokenizer: Tokenizer) -> list[Candidate] | None:
    """The two words with their tokens; None where they are not one token each."""
    try:
        return list(map(Candidate, _WORDS, Candidates(tokenizer).ids(CONTEXT, "", _WORDS)))
    except Failure as failure:
        if failure.code == "candidate_not_one_token":
            return None
        raise


@dataclass(frozen=True, slots=True)
class _Probe:
    """One way of asking; `words` are the two words, where their tokens are known."""

    transport: Transport
    settings: OpenAILogprobsBackend
    model: str
    untried: Features
    prompt: Prompt
    words: list[Candidate] | None

    def tried(self) -> Features:
        """What the server has when it is asked in this way; raises Failure."""
        agreed, listing = self._longest_list()
        top = min(agreed, len(listing.entries))
        return replace(
            self.untried,
            tokens="id" if listing.has_ids else "text",
            logit_bias=self._reach(top, listing),
            top=top,
        )

    def _longest_list(self) -> tuple[int, Listing]:
        """How many tokens the server agrees to list, and one such list; raises Failure."""
        most = self.untried.top
        for top in (most, *(fewer for fewer in _FEWER if fewer < most)):
            try:
                return top, self._ask(top, FORCING_BIAS, FORCING_BIAS - _LESS)
            except Failure as failure:
                if failure.status not in _REFUSED:
                    raise
                refused = failure
        raise refused

    def _reach(self, top: int, listing: Listing) -> BiasReach:
        """How far a bias gets; `listing` came with more of it for the first word."""
        if self.words is None:
            return BiasReach.UNTRIED
        try:
            other = self._ask(top, FORCING_BIAS - _LESS, FORCING_BIAS)
            before, after = _log_ratio(listing, self.words), _log_ratio(other, self.words)
            # The words' own difference cancels; that of their biases is left, twice.
            if abs(before - after - 2 * _LESS) < _TOLERANCE:
                return BiasReach.PROBABILITIES
            forced = [self._ask(top, FORCING_BIAS, 0.0), self._ask(top, 0.0, FORCING_BIAS)]
        except Failure as failure:
            if failure.status is None:
                raise
            return BiasReach.IGNORED
        obeyed = all(map(Listing.predicts, forced, self.words))
        return BiasReach.SAMPLING if obeyed and _agree(*forced) else BiasReach.IGNORED

    def _ask(self, top: int, *biases: float) -> Listing:
        features = replace(self.untried, top=top)
        client = OpenAICompletions(self.transport, self.settings, features)
        by_token = {
            word.id: bias
            for word, bias in zip(self.words or (), biases, strict=False)
            if bias and word.id is not None
        }
        body = client.body(self.prompt, self.model, by_token, None)
        return client.listing(self.transport.post(client.endpoint, body))


def _log_ratio(listing: Listing, words: Iterable[Candidate]) -> float:
    """How much likelier the first word is, as a logarithm; NaN where they are not both listed."""
    try:
        first, second = map(listing.find, words)
    except ValueError:
        return math.nan
    return first.logprob - second.logprob if first and second else math.nan


def _agree(one: Listing, other: Listing) -> bool:
    """Whether two answers list one distribution, the predicted token's probability included."""
    known = {(entry.id, entry.text): entry.logprob for entry in one.entries}
    alike = [
        abs(entry.logprob - known[entry.id, entry.text]) < _TOLERANCE
        for entry in other.entries
        if (entry.id, entry.text) in known
    ]
    masses = [math.fsum(entry.probability for entry in part.entries) for part in (one, other)]
    return bool(alike) and all(alike) and max(masses) < _MOST_MASS
