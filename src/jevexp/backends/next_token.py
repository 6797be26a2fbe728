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
from jevexp.backends.transport import Failure, Reply
from jevexp.core.decision import Decision, Request

# The strongest bias that OpenAI's description allows.
FORCING_BIAS = 100.0
# What symbols are looked up after where nobody sees the prompt, and answers begin after: not a word
# that they could join.
CONTEXT = "\n"


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
class Prompt:
    """A user message, and where the server shows it the prompt that it makes of the message.

    `end` is the prompt's fixed end, which no state can change; empty where that is not known.
    """

    content: str
    text: str | None = None
    end: str = ""

    @classmethod
    def rendered(cls, asked: Message, text: str) -> "Prompt":
        """The prompt that `text` is, with the message's ending in it if the template left it."""
        _, ending, after = text.rpartition(asked.ending)
        return cls(asked.content, text, ending + after if ending else "")


@dataclass(slots=True)
class Exchange:
    """What one decision has sent and got so far; `sent` is what evidence has beside the bodies."""

    sent: dict[str, Any] = field(default_factory=dict)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)


class NothingListed(Failure):
    """An answer without a list, as where a token was predicted that is no text on its own."""


class CompletionClient(Protocol):
    """One server as it is asked for a single token, and what evidence of that looks like."""

    @property
    def endpoint(self) -> str:
        """Where the body is posted to."""

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The server's tokenizer; None where it offers none."""

    @property
    def reach(self) -> BiasReach:
        """How far a bias gets."""

    @property
    def bias(self) -> float:
        """What is added to every candidate's logit where the probabilities know of it."""

    @property
    def most_listed(self) -> int:
        """How many tokens the server lists."""

    def render(self, asked: Message, exchange: Exchange) -> Prompt:
        """The prompt for a message; raises Failure."""

    def body(
        self, prompt: Prompt, model: str, biases: Mapping[int, float], candidates: int | None
    ) -> dict[str, Any]:
        """The body that asks for one token, with biases by token id.

        `candidates` is how many of the listed tokens are looked for; None lists all there can be.
        """

    def post(self, body: dict[str, Any]) -> Reply:
        """The reply to a body, not read yet; raises Failure."""

    def listing(self, reply: Reply) -> Listing:
        """The tokens in a reply; raises NothingListed, or Failure for any other defect."""

    def sent(self, exchange: Exchange) -> dict[str, Any]:
        """What was sent, as evidence."""

    def answer_fields(self, exchange: Exchange, readout: dict[str, Any]) -> dict[str, Any]:
        """The fields of a decision that each server spells in its own way.

        These are response, usage and runtime, and `model` where the answer names one.
        """


class Decider:
    """Decides over one client; `model` stands in where an answer names none."""

    def __init__(self, client: CompletionClient, model: str | None) -> None:
        self._client = client
        self._model = model
        self._lookup = Candidates(client.tokenizer) if client.tokenizer else None

    def decide(self, request: Request) -> Decision:
        """Ask, once where that is enough; every failure is a decision that is not ok."""
        model = self._model or request.model
        if refused := self._refused(len(request.question.options)):
            return Decision(ok=False, model=model, error=refused)
        asked, exchange = message(request), Exchange()
        try:
            prompt = self._client.render(asked, exchange)
            candidates = self._candidates(asked, prompt, exchange)
            readout, bias = self._read(prompt, candidates, request.model, exchange)
        except Failure as failure:
            return Decision(
                ok=False,
                model=model,
                error=failure.code,
                status_code=failure.status,
                request=request.wire() | {"sent": self._client.sent(exchange)},
                response=failure.evidence,
            )
        masses = {
            "off_option_mass": readout.off_option_mass,
            "candidate_mass": readout.candidate_mass,
            "bias": bias,
        }
        fields = {"model": model} | self._client.answer_fields(exchange, masses)
        return Decision(
            ok=True,
            probs=dict(zip(asked.symbols, readout.shares, strict=True)),
            status_code=exchange.replies[-1].status,
            request=request.wire() | {"sent": self._client.sent(exchange)},
            **fields,
        )

    def _refused(self, options: int) -> str | None:
        if not options:
            return "options_unknown"
        # A list after the bias cannot hold more candidates than tokens.
        biased = self._client.reach is BiasReach.PROBABILITIES
        most = min(MOST_OPTIONS, self._client.most_listed) if biased else MOST_OPTIONS
        return "too_many_options" if options > most else None

    def _candidates(self, asked: Message, prompt: Prompt, exchange: Exchange) -> list[Candidate]:
        """The options' tokens after the prompt, without ids where the server tells none."""
        symbols = list(asked.symbols.values())
        ids: Sequence[int | None] = [None] * len(symbols)
        if self._lookup is not None:
            text = CONTEXT if prompt.text is None else prompt.text
            ids = self._lookup.ids(text, prompt.end, symbols)
        candidates = [Candidate(symbol, token) for symbol, token in zip(symbols, ids, strict=True)]
        exchange.sent = prompt_hash(prompt) | {
            "candidates": {
                label: {"text": candidate.text, "id": candidate.id}
                for label, candidate in zip(asked.symbols, candidates, strict=True)
            }
        }
        return candidates

    def _read(
        self, prompt: Prompt, candidates: list[Candidate], model: str, exchange: Exchange
    ) -> tuple[Readout, float | None]:
        """The readout, and the bias that it was read with."""
        known = all(candidate.id is not None for candidate in candidates)
        if known and self._client.reach is BiasReach.PROBABILITIES:
            return self._read_biased(prompt, candidates, model, exchange)
        return self._read_unbiased(prompt, candidates, model, exchange), None

    def _read_biased(
        self, prompt: Prompt, candidates: list[Candidate], model: str, exchange: Exchange
    ) -> tuple[Readout, float]:
        """All candidates from one list; with a stronger bias where one of them missed it.

        There is no list at all where a token was predicted that is no text on its own, which the
        stronger bias keeps from happening again.
        """
        ids = [candidate.id for candidate in candidates if candidate.id is not None]
        for bias in (self._client.bias, MISSING_BIAS):
            biases = dict.fromkeys(ids, bias)
            body = self._client.body(prompt, model, biases, len(candidates))
            try:
                listing = self._ask(body, exchange)
            except NothingListed:
                if bias == MISSING_BIAS:
                    raise
                continue
            reply = exchange.replies[-1]
            listed = [self._find(listing, candidate, reply) for candidate in candidates]
            known = [entry.probability for entry in listed if entry is not None]
            if len(known) == len(listed):
                try:
                    return read_biased(known, bias), bias
                except ValueError as error:
                    raise self._unreadable(reply, "bad_response") from error
        raise self._unreadable(exchange.replies[-1], "candidate_missing")

    def _read_unbiased(
        self, prompt: Prompt, candidates: list[Candidate], model: str, exchange: Exchange
    ) -> Readout:
        """Candidates from a list without a bias, and those that it lacks each by force."""
        listing = self._ask(self._client.body(prompt, model, {}, None), exchange)
        reply = exchange.replies[-1]
        logprobs = []
        for candidate in candidates:
            entry = self._find(listing, candidate, reply)
            if entry is None:
                entry = self._forced(prompt, candidate, model, exchange)
            logprobs.append(entry.logprob)
        try:
            return read_unbiased(logprobs)
        except ValueError as error:
            raise self._unreadable(reply, "bad_response") from error

    def _forced(
        self, prompt: Prompt, candidate: Candidate, model: str, exchange: Exchange
    ) -> Entry:
        if self._client.reach is not BiasReach.SAMPLING or candidate.id is None:
            raise self._unreadable(exchange.replies[-1], "candidate_missing")
        body = self._client.body(prompt, model, {candidate.id: FORCING_BIAS}, None)
        listing = self._ask(body, exchange)
        sampled = listing.sampled
        predicted = sampled is not None and (
            sampled.id == candidate.id if listing.has_ids else sampled.text == candidate.text
        )
        if sampled is None or not predicted:
            raise self._unreadable(exchange.replies[-1], "candidate_missing")
        return sampled

    def _ask(self, body: dict[str, Any], exchange: Exchange) -> Listing:
        exchange.bodies.append(body)
        reply = self._client.post(body)
        exchange.replies.append(reply)
        return self._client.listing(reply)

    def _find(self, listing: Listing, candidate: Candidate, reply: Reply) -> Entry | None:
        try:
            return listing.find(candidate)
        except ValueError as error:
            raise self._unreadable(reply, "candidate_ambiguous") from error

    def _unreadable(self, reply: Reply, code: str) -> Failure:
        return Failure(code, reply.status, {"endpoint": self._client.endpoint, "body": reply.body})


def prompt_hash(prompt: Prompt) -> dict[str, str]:
    """The evidence of a prompt that the server showed: the SHA-256 of its UTF-8 bytes."""
    if prompt.text is None:
        return {}
    return {"prompt_sha256": hashlib.sha256(prompt.text.encode()).hexdigest()}


class RecordedTokenizer:
    """What only the server can tell of a prompt and its candidates, from a recording."""

    def __init__(self, raw: RawAnswer, prompt: str) -> None:
        self._prompt = prompt
        self._ids = {
            candidate["text"]: candidate["id"]
            for candidate in raw.sent.get("candidates", {}).values()
        }

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

    They said 1 and 0 of a sum that rounding carried past 1.
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
