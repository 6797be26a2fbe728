"""One decision from the probabilities of the next token, over any server that lists some of them.

Where the listed probabilities are those after a bias, one request shows all candidates. Where a
bias only decides which token is predicted, the candidates that are not listed are each predicted
once by force, and come with their unbiased probability. Without a bias, only what is listed can be
read. What cannot be read is a failure and never a zero.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

from jevexp.backends.prompt import MOST_OPTIONS, Message, message
from jevexp.backends.readout import (
    LARGEST_TELLING_BIAS,
    MISSING_BIAS,
    Candidate,
    Candidates,
    Entry,
    Listing,
    Readout,
    Tokenizer,
    read_biased,
    read_unbiased,
)
from jevexp.backends.rereading import RawAnswer
from jevexp.backends.transport import Failure, HttpPoster, Reply, name_or_none
from jevexp.core.decision import Decision, Request

# The strongest bias that OpenAI's description allows.
FORCING_BIAS = 100.0
# Symbols are looked up after this where nobody sees the prompt, and answers begin after it: it is
# not a word that they could join.
CONTEXT = "\n"


class BiasReach(StrEnum):
    """How far a `logit_bias` gets, the furthest first."""

    PROBABILITIES = "probabilities"
    """The listed probabilities are those after the bias."""
    SAMPLING = "sampling"
    """It decides which token is predicted; the listed probabilities are those before it."""
    IGNORED = "ignored"
    """It changes nothing."""
    UNTRIED = "untried"
    """No token's id is known, so that none could be given."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A user message, and where the server shows it the prompt that it makes of the message.

    `end` is the prompt's fixed end, which no state can change; empty where that is not known.
    """

    content: str
    text: str | None = None
    end: str = ""

    @classmethod
    def rendered(cls, user: Message, text: str) -> "Prompt":
        """The prompt that `text` is, with the message's ending in it if the template left it."""
        _, ending, after = text.rpartition(user.ending)
        return cls(user.content, text, ending + after if ending else "")

    @property
    def evidence(self) -> dict[str, str]:
        """The SHA-256 of its UTF-8 bytes, where the server showed it."""
        if self.text is None:
            return {}
        return {"prompt_sha256": hashlib.sha256(self.text.encode()).hexdigest()}


@dataclass(slots=True)
class Exchange:
    """What one decision has sent and got so far; `sent` is what evidence has beside the bodies."""

    sent: dict[str, Any] = field(default_factory=dict)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)


class NothingListed(Failure):
    """An answer without a list, as where a token was predicted that is no text on its own."""


class CompletionClient(Protocol):
    """One server as it is asked for a single token, and what evidence of that looks like.

    `transport` is the server, or a recording of it; `endpoint` takes the bodies. `bias` is added to
    every candidate's logit where the probabilities know of it, and `reach` is how far it gets. The
    server lists `most_listed` tokens, and may offer no tokenizer.
    """

    transport: HttpPoster
    endpoint: str
    tokenizer: Tokenizer | None
    reach: BiasReach
    bias: float
    most_listed: int

    def render(self, user: Message, exchange: Exchange) -> Prompt:
        """The prompt for a message; raises Failure."""

    def body(
        self, prompt: Prompt, model: str, biases: Mapping[int, float], candidates: int | None
    ) -> dict[str, Any]:
        """The body that asks for one token, with biases by token id.

        `candidates` is how many of the listed tokens are looked for; None lists all there can be.
        """

    def listing(self, reply: Reply) -> Listing:
        """The tokens in a reply; raises NothingListed, or Failure for any other defect."""

    def failure(self, reply: Reply, code: str, kind: type[Failure] = Failure) -> Failure:
        """What is wrong with a reply, and the reply as evidence."""
        return kind(code, reply.status, reply.evidence(self.endpoint))

    def sent(self, exchange: Exchange) -> dict[str, Any]:
        """What was sent, as evidence."""

    def answer_fields(self, exchange: Exchange, readout: dict[str, Any]) -> dict[str, Any]:
        """What each server spells in its own way: response, usage, runtime and model."""


class Decider:
    """Decides over one client; `model` stands in where an answer names none."""

    def __init__(self, client: CompletionClient, model: str | None) -> None:
        self._client = client
        self._model = model
        self._lookup = Candidates(client.tokenizer) if client.tokenizer else None

    def decide(self, request: Request) -> Decision:
        """Ask, once where that is enough; every failure is a decision that is not ok."""
        client, options, most = self._client, len(request.question.options), MOST_OPTIONS
        failed = Decision(ok=False, model=self._model or request.model)
        if not options:
            return replace(failed, error="options_unknown")
        if client.reach is BiasReach.PROBABILITIES:
            # A list after the bias cannot hold more candidates than tokens.
            most = min(most, client.most_listed)
        if options > most:
            return replace(failed, error="too_many_options")
        user, exchange = message(request), Exchange()
        try:
            prompt = client.render(user, exchange)
            candidates = self._candidates(user, prompt, exchange)
            readout, bias = _Reading(client, prompt, candidates, request.model, exchange).read()
        except Failure as failure:
            return replace(
                failed,
                error=failure.code,
                status_code=failure.status,
                request=request.wire() | {"sent": client.sent(exchange)},
                response=failure.evidence,
            )
        masses = {
            "off_option_mass": readout.off_option_mass,
            "candidate_mass": readout.candidate_mass,
            "bias": bias,
        }
        fields = client.answer_fields(exchange, masses)
        return Decision(
            ok=True,
            model=name_or_none(fields.pop("model")) or failed.model,
            probs=dict(zip(user.symbols, readout.shares, strict=True)),
            status_code=exchange.replies[-1].status,
            request=request.wire() | {"sent": client.sent(exchange)},
            **fields,
        )

    def _candidates(self, user: Message, prompt: Prompt, exchange: Exchange) -> list[Candidate]:
        """The options' tokens after the prompt, without ids where the server tells none."""
        symbols = list(user.symbols.values())
        ids: Sequence[int | None] = [None] * len(symbols)
        if self._lookup is not None:
            text = CONTEXT if prompt.text is None else prompt.text
            ids = self._lookup.ids(text, prompt.end, symbols)
        candidates = [Candidate(symbol, token) for symbol, token in zip(symbols, ids, strict=True)]
        exchange.sent = prompt.evidence | {
            "candidates": {
                label: {"text": candidate.text, "id": candidate.id}
                for label, candidate in zip(user.symbols, candidates, strict=True)
            }
        }
        return candidates


@dataclass(frozen=True, slots=True)
class _Reading:
    """One question, put to the server until all candidates are read or one cannot be."""

    client: CompletionClient
    prompt: Prompt
    candidates: Sequence[Candidate]
    model: str
    exchange: Exchange

    def read(self) -> tuple[Readout, float | None]:
        """The readout, and the bias that it was read with; raises Failure."""
        ids = [candidate.id for candidate in self.candidates if candidate.id is not None]
        if self.client.reach is BiasReach.PROBABILITIES and len(ids) == len(self.candidates):
            return self._biased(ids)
        return self._unbiased(), None

    def _biased(self, ids: Sequence[int]) -> tuple[Readout, float]:
        """All candidates from one list; with a stronger bias where one of them missed it."""
        for bias in (self.client.bias, MISSING_BIAS):
            try:
                reply, listing = self._ask(dict.fromkeys(ids, bias), len(ids))
            except NothingListed:
                # A token was predicted that is no text on its own; the stronger bias prevents it.
                if bias == MISSING_BIAS:
                    raise
                continue
            entries = [self._find(listing, candidate, reply) for candidate in self.candidates]
            known = [entry.probability for entry in entries if entry is not None]
            if len(known) == len(entries):
                try:
                    return read_biased(known, bias), bias
                except ValueError as error:
                    raise self.client.failure(reply, "bad_response") from error
        raise self.client.failure(self.exchange.replies[-1], "candidate_missing")

    def _unbiased(self) -> Readout:
        """Candidates from a list without a bias, and those that it lacks each by force."""
        reply, listing = self._ask({})
        entries = [
            self._find(listing, candidate, reply) or self._forced(candidate)
            for candidate in self.candidates
        ]
        try:
            return read_unbiased([entry.logprob for entry in entries])
        except ValueError as error:
            raise self.client.failure(reply, "bad_response") from error

    def _forced(self, candidate: Candidate) -> Entry:
        if self.client.reach is BiasReach.SAMPLING and candidate.id is not None:
            _, listing = self._ask({candidate.id: FORCING_BIAS})
            if listing.sampled and listing.predicts(candidate):
                return listing.sampled
        raise self.client.failure(self.exchange.replies[-1], "candidate_missing")

    def _ask(
        self, biases: Mapping[int, float], candidates: int | None = None
    ) -> tuple[Reply, Listing]:
        body = self.client.body(self.prompt, self.model, biases, candidates)
        self.exchange.bodies.append(body)
        reply = self.client.transport.post(self.client.endpoint, body)
        self.exchange.replies.append(reply)
        return reply, self.client.listing(reply)

    def _find(self, listing: Listing, candidate: Candidate, reply: Reply) -> Entry | None:
        try:
            return listing.find(candidate)
        except ValueError as error:
            raise self.client.failure(reply, "candidate_ambiguous") from error


class RecordedTokenizer:
    """What only the server can tell of a prompt and its candidates, from a recording."""

    def __init__(self, raw: RawAnswer, prompt: str) -> None:
        self._prompt = prompt
        candidates = raw.sent.get("candidates", {}).values()
        self._ids = {candidate["text"]: candidate["id"] for candidate in candidates}

    def __call__(self, text: str, *, special: bool = True) -> list[int]:
        """One token for the prompt, and the recorded one for a symbol after it."""
        added = text.removeprefix(self._prompt)
        # Two readings that differ say that the prompt's end is cut off by a control token.
        tokens = [1 if special else 2]
        if special and added != text and added:
            tokens.append(self._ids[added])
        return tokens


def with_earlier_masses(decision: Decision, raw: RawAnswer) -> Decision:
    """The decision with the masses that earlier versions recorded where they are not known.

    Where rounding carried a sum past 1, they recorded 1 and 0.
    """
    recorded = raw.response.get("readout") if isinstance(raw.response, Mapping) else None
    if not decision.ok or not isinstance(recorded, Mapping):
        return decision
    read = decision.response["readout"]
    told = read["bias"] is None or read["bias"] <= LARGEST_TELLING_BIAS
    earlier = {"off_option_mass": 0.0, "candidate_mass": 1.0, "bias": read["bias"]}
    if not told or read["off_option_mass"] is not None or recorded != earlier:
        return decision
    return replace(
        decision,
        response=decision.response | {"readout": earlier},
        runtime={**(decision.runtime or {}), "off_option_mass": 0.0},
    )
