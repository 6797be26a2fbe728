"""One decision: apply the server's template, find the candidates, read one distribution."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jevexp.backends.candidates import Candidates
from jevexp.backends.llama_cpp.readout import (
    MISSING_BIAS,
    NothingListedError,
    Readout,
    completion_body,
    read,
)
from jevexp.backends.llama_cpp.tokens import LlamaTokenizer
from jevexp.backends.prompt import MOST_OPTIONS, Message, message, without_thinking
from jevexp.backends.transport import Failure, HttpPoster, Reply
from jevexp.core.decision import Decision, Request
from jevexp.settings import LlamaReadout, LlamaTemplate

_TEMPLATE = "/apply-template"
_COMPLETION = "/completion"


@dataclass(slots=True)
class _Attempt:
    """What one decision has sent last, and the answers it has got, for the raw evidence."""

    sent: dict[str, Any] = field(default_factory=dict)
    answers: list[Reply] = field(default_factory=list)


class Decider:
    """Decides over one connection.

    `model` stands in where an answer names none; `route` is part of every request's body, and
    tells a router which model is meant.
    """

    def __init__(
        self,
        transport: HttpPoster,
        template: LlamaTemplate,
        readout: LlamaReadout,
        model: str,
        *,
        route: Mapping[str, str] | None = None,
    ) -> None:
        self._transport = transport
        self._template = template
        self._readout = readout
        self._model = model
        self._route = dict(route or {})
        self._candidates = Candidates(LlamaTokenizer(transport, self._route))

    def decide(self, request: Request) -> Decision:
        """Ask once; every failure of the server is a decision that is not ok."""
        options = len(request.question.options)
        if not options:
            return Decision(ok=False, model=self._model, error="options_unknown")
        if options > MOST_OPTIONS:
            return Decision(ok=False, model=self._model, error="too_many_options")
        asked = message(request)
        attempt = _Attempt()
        try:
            prompt, end = self._render(asked, attempt)
            ids = self._candidates.ids(prompt, end, asked.symbols.values())
            attempt.sent = {
                "prompt_sha256": hashlib.sha256(prompt.encode()).hexdigest(),
                "candidates": {
                    label: {"text": symbol, "id": token}
                    for (label, symbol), token in zip(asked.symbols.items(), ids, strict=True)
                },
            }
            readout, bias = self._read(prompt, ids, attempt)
        except Failure as failure:
            return Decision(
                ok=False,
                model=self._model,
                error=failure.code,
                status_code=failure.status,
                request=request.wire() | {"sent": attempt.sent},
                response=failure.evidence,
            )
        return self._answer(request, attempt, asked, readout, bias)

    def _render(self, asked: Message, attempt: _Attempt) -> tuple[str, str]:
        """The prompt, and its end that no state changes; empty when the template changed it."""
        body = {
            "messages": [{"role": "user", "content": asked.content}],
            "add_generation_prompt": True,
            "chat_template_kwargs": self._template.kwargs,
            **self._route,
        }
        attempt.sent = {"endpoint": _TEMPLATE, "body": body}
        reply = self._transport.post(_TEMPLATE, body)
        rendered = reply.body.get("prompt")
        if not isinstance(rendered, str):
            raise Failure("bad_response", reply.status, _evidence(_TEMPLATE, reply))
        prompt = without_thinking(rendered)
        _, ending, after = prompt.rpartition(asked.ending)
        return prompt, ending + after if ending else ""

    def _read(self, prompt: str, ids: tuple[int, ...], attempt: _Attempt) -> tuple[Readout, float]:
        """Ask for the distribution; with a stronger bias where a candidate missed the list.

        There is no list at all where a token was predicted that is no text on its own, which the
        stronger bias keeps from happening again.
        """
        for bias in (self._readout.bias, MISSING_BIAS):
            body = completion_body(prompt, ids, bias, self._readout.extra_probs) | self._route
            attempt.sent |= {"endpoint": _COMPLETION, "body": body}
            reply = self._transport.post(_COMPLETION, body)
            attempt.answers.append(reply)
            if reply.body.get("truncated") is True:
                # Older builds shorten a prompt that is too long instead of refusing it.
                raise Failure("context_overflow", reply.status, _evidence(_COMPLETION, reply))
            try:
                readout = read(reply.body, ids, bias)
            except ValueError as error:
                if isinstance(error, NothingListedError) and bias != MISSING_BIAS:
                    continue
                evidence = _evidence(_COMPLETION, reply)
                raise Failure("bad_response", reply.status, evidence) from error
            if readout is not None:
                return readout, bias
        raise Failure("candidate_missing", reply.status, _evidence(_COMPLETION, reply))

    def _answer(
        self, request: Request, attempt: _Attempt, asked: Message, readout: Readout, bias: float
    ) -> Decision:
        *before, reply = attempt.answers
        model = reply.body.get("model")
        response: dict[str, Any] = {
            "body": reply.body,
            "readout": {
                "off_option_mass": readout.off_option_mass,
                "candidate_mass": readout.candidate_mass,
                "bias": bias,
            },
        }
        if before:
            response["body_without_all_candidates"] = before[0].body
        return Decision(
            ok=True,
            model=model if isinstance(model, str) and model else self._model,
            probs=dict(zip(asked.symbols, readout.shares, strict=True)),
            status_code=reply.status,
            usage={
                "input_tokens": _total(attempt.answers, "tokens_evaluated"),
                "output_tokens": _total(attempt.answers, "tokens_predicted"),
            },
            request=request.wire() | {"sent": attempt.sent},
            response=response,
            runtime={
                "off_option_mass": readout.off_option_mass,
                "timings": reply.body.get("timings"),
            },
        )


def _evidence(endpoint: str, reply: Reply) -> dict[str, Any]:
    return {"endpoint": endpoint, "body": reply.body}


def _total(answers: list[Reply], count: str) -> int | None:
    """The tokens that the server reports for all answers; None where it does not say."""
    counts = [answer.body.get(count) for answer in answers]
    known = [number for number in counts if type(number) is int]
    return sum(known) if len(known) == len(counts) else None
