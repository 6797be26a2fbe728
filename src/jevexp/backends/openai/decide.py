"""One decision: find the candidates, and read what the server shows of their probabilities.

Where the listed probabilities are those after a bias, one request shows all candidates, as with
llama.cpp's own route. Where a bias only decides what is predicted, the candidates that are not
listed are each predicted once by force, and come with their unbiased probability. Without a bias,
only what is listed can be read. What cannot be read is a failure and never a zero.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jevexp.backends.candidates import Candidates
from jevexp.backends.llama_cpp.readout import MISSING_BIAS, Readout, readout_of
from jevexp.backends.openai.asking import CHAT, Answer, Asked, Asking
from jevexp.backends.openai.connection import answering_model, usage
from jevexp.backends.openai.probe import CONTEXT, FORCING_BIAS, BiasReach, Features
from jevexp.backends.prompt import MOST_OPTIONS, Message, message, without_thinking
from jevexp.backends.transport import Failure, HttpPoster, Reply
from jevexp.core.decision import Decision, Request
from jevexp.settings import OpenAILogprobsBackend

# Tokens asked for beyond the candidates.
_EXTRA = 4
# Probabilities that were read one by one, by servers that compute in half precision.
_SLACK = 1e-2


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One option's symbol, and its token's id where it is known."""

    text: str
    id: int | None


@dataclass(slots=True)
class _Attempt:
    """What one decision has sent and got so far, for the raw evidence."""

    sent: dict[str, Any] = field(default_factory=dict)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)


class Decider:
    """Decides over one connection, with what the server was found to have.

    `model` stands in where an answer names none.
    """

    def __init__(
        self,
        transport: HttpPoster,
        settings: OpenAILogprobsBackend,
        features: Features,
        model: str | None,
    ) -> None:
        self._settings = settings
        self._features = features
        self._model = model
        self._asking = Asking(
            transport,
            settings,
            route=features.route,
            family=features.family,
            extras=features.extras,
        )
        self._lookup = Candidates(features.tokenizer) if features.tokenizer else None

    def decide(self, request: Request) -> Decision:
        """Ask, once where that is enough; every failure is a decision that is not ok."""
        model = self._model or request.model
        if refused := self._refused(len(request.question.options)):
            return Decision(ok=False, model=model, error=refused)
        asked, attempt = message(request), _Attempt()
        try:
            prompt, candidates = self._prepare(asked, attempt)
            readout, bias = self._read(prompt, candidates, request.model, attempt)
        except Failure as failure:
            return Decision(
                ok=False,
                model=model,
                error=failure.code,
                status_code=failure.status,
                request=request.wire() | {"sent": self._sent(attempt)},
                response=failure.evidence,
            )
        replies = attempt.replies
        first, *further = replies
        response: dict[str, Any] = {
            "body": first.body,
            "readout": {
                "off_option_mass": readout.off_option_mass,
                "candidate_mass": readout.candidate_mass,
                "bias": bias,
            },
        }
        if further:
            response["further_bodies"] = [reply.body for reply in further]
        return Decision(
            ok=True,
            model=answering_model(first, model),
            probs=dict(zip(asked.symbols, readout.shares, strict=True)),
            status_code=replies[-1].status,
            usage=usage(replies),
            request=request.wire() | {"sent": self._sent(attempt)},
            response=response,
            runtime={
                "off_option_mass": readout.off_option_mass,
                "requests": len(replies),
                "timings": first.body.get("timings"),
            },
        )

    def _refused(self, options: int) -> str | None:
        if not options:
            return "options_unknown"
        # A list after the bias cannot hold more candidates than tokens.
        listed = self._features.logit_bias is BiasReach.PROBABILITIES
        most = min(MOST_OPTIONS, self._features.top) if listed else MOST_OPTIONS
        return "too_many_options" if options > most else None

    def _prepare(self, asked: Message, attempt: _Attempt) -> tuple[Asked, list[_Candidate]]:
        """The prompt, as far as the server shows it, and the candidates' tokens after it."""
        prompt, end = None, ""
        if self._features.renderer is not None:
            rendered = self._features.renderer(asked.content)
            prompt = without_thinking(rendered)
            if prompt != rendered and self._asking.endpoint == CHAT:
                # The next token would be a thought.
                raise Failure("thinking_open")
            _, ending, after = prompt.rpartition(asked.ending)
            end = ending + after if ending else ""
            attempt.sent["prompt_sha256"] = hashlib.sha256(prompt.encode()).hexdigest()
        symbols = list(asked.symbols.values())
        ids: Sequence[int | None] = [None] * len(symbols)
        if self._lookup is not None:
            ids = self._lookup.ids(CONTEXT if prompt is None else prompt, end, symbols)
        candidates = [_Candidate(symbol, token) for symbol, token in zip(symbols, ids, strict=True)]
        attempt.sent["candidates"] = {
            label: {"text": candidate.text, "id": candidate.id}
            for label, candidate in zip(asked.symbols, candidates, strict=True)
        }
        return Asked(asked.content, prompt), candidates

    def _sent(self, attempt: _Attempt) -> dict[str, Any]:
        """Further requests are the first but for their bias."""
        if not attempt.bodies:
            return attempt.sent
        first, *further = attempt.bodies
        sent = attempt.sent | {"endpoint": self._asking.endpoint, "body": first}
        if further:
            sent["further_biases"] = [body.get("logit_bias") for body in further]
        return sent

    def _read(
        self, asked: Asked, candidates: list[_Candidate], model: str, attempt: _Attempt
    ) -> tuple[Readout, float | None]:
        """The readout, and the bias that it was read with."""
        known = all(candidate.id is not None for candidate in candidates)
        if known and self._features.logit_bias is BiasReach.PROBABILITIES:
            return self._read_biased(asked, candidates, model, attempt)
        return self._read_plain(asked, candidates, model, attempt), None

    def _read_biased(
        self, asked: Asked, candidates: list[_Candidate], model: str, attempt: _Attempt
    ) -> tuple[Readout, float]:
        """All candidates from one list; with a stronger bias where one of them missed it.

        There is no list at all where a token was predicted that is no text on its own, which the
        stronger bias keeps from happening again.
        """
        ids = [candidate.id for candidate in candidates if candidate.id is not None]
        top = min(len(candidates) + _EXTRA, self._features.top)
        for bias in (self._settings.readout.bias, MISSING_BIAS):
            try:
                answer = self._ask(asked, model, top, dict.fromkeys(ids, bias), attempt)
            except Failure as failure:
                if failure.code != "no_logprobs" or bias == MISSING_BIAS:
                    raise
                continue
            found = [self._find(answer, candidate) for candidate in candidates]
            known = [math.exp(logprob) for logprob in found if logprob is not None]
            if len(known) == len(found):
                try:
                    return readout_of(known, bias), bias
                except ValueError as error:
                    raise self._unreadable(answer.reply, "bad_response") from error
        raise self._unreadable(answer.reply, "candidate_missing")

    def _read_plain(
        self, asked: Asked, candidates: list[_Candidate], model: str, attempt: _Attempt
    ) -> Readout:
        """The candidates that are listed, then each of the others, predicted by force."""
        answer = self._ask(asked, model, self._features.top, {}, attempt)
        logprobs = []
        for candidate in candidates:
            logprob = self._find(answer, candidate)
            logprobs.append(
                self._forced(asked, candidate, model, attempt) if logprob is None else logprob
            )
        try:
            return _unbiased(logprobs)
        except ValueError as error:
            raise self._unreadable(answer.reply, "bad_response") from error

    def _forced(self, asked: Asked, candidate: _Candidate, model: str, attempt: _Attempt) -> float:
        if self._features.logit_bias is not BiasReach.SAMPLING or candidate.id is None:
            raise self._unreadable(attempt.replies[-1], "candidate_missing")
        bias = {candidate.id: FORCING_BIAS}
        answer = self._ask(asked, model, self._features.top, bias, attempt)
        sampled = answer.listing.sampled
        by_id = answer.listing.has_ids
        if (sampled.id != candidate.id) if by_id else (sampled.text != candidate.text):
            raise self._unreadable(answer.reply, "candidate_missing")
        return sampled.logprob

    def _ask(
        self, asked: Asked, model: str, top: int, bias: dict[int, float], attempt: _Attempt
    ) -> Answer:
        body = self._asking.body(asked, model, top, bias)
        attempt.bodies.append(body)
        reply = self._asking.post(body)
        attempt.replies.append(reply)
        return self._asking.read(reply)

    def _find(self, answer: Answer, candidate: _Candidate) -> float | None:
        try:
            return answer.listing.find(candidate.id, candidate.text)
        except ValueError as error:
            raise self._unreadable(answer.reply, "candidate_ambiguous") from error

    def _unreadable(self, reply: Reply, code: str) -> Failure:
        return Failure(code, reply.status, {"endpoint": self._asking.endpoint, "body": reply.body})


def _unbiased(logprobs: Sequence[float]) -> Readout:
    """The readout of log-probabilities without a bias: their softmax, and their mass as it is.

    Raises:
        ValueError: they cannot be of one distribution.
    """
    largest = max(logprobs)
    mass = math.fsum(math.exp(logprob) for logprob in logprobs)
    if largest == -math.inf or mass > 1 + _SLACK:
        raise ValueError("probabilities out of range")
    weights = [math.exp(logprob - largest) for logprob in logprobs]
    total = math.fsum(weights)
    mass = min(mass, 1.0)
    return Readout(tuple(weight / total for weight in weights), mass, 1.0 - mass)
