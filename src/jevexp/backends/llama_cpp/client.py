"""llama.cpp's own routes: its template, its tokenizer, and one token with its probabilities."""

import math
from collections.abc import Mapping
from typing import Any

from jevexp.backends.next_token import (
    BiasReach,
    Decider,
    Exchange,
    NothingListed,
    Prompt,
    RecordedTokenizer,
    with_earlier_masses,
)
from jevexp.backends.prompt import MOST_OPTIONS, Message, without_thinking
from jevexp.backends.readout import MISSING_BIAS, SLACK, Entry, Listing
from jevexp.backends.rereading import RawAnswer, last_reply
from jevexp.backends.transport import Failure, HttpPoster, Reply
from jevexp.core.decision import Decision, Request
from jevexp.settings import LlamaCppBackend

_TEMPLATE, _TOKENIZE, _COMPLETION = "/apply-template", "/tokenize", "/completion"
# Ranking the whole of a large vocabulary takes the server as long as some models need for a short
# prompt. The tokens beyond these, which a candidate with a bias is never among, hold less than
# 1e-4 of the mass outside the candidates; vocabularies up to this size are read whole.
_RANKED = 1 << 16


class LlamaTokenizer:
    """Tokens as in a `/completion`; `route` is part of every request's body."""

    def __init__(self, transport: HttpPoster, route: Mapping[str, str] | None = None) -> None:
        self._transport = transport
        self._route = dict(route or {})

    def __call__(self, text: str, *, special: bool = True) -> list[int]:
        """The tokens of a prompt; raises Failure."""
        # Specials at the start as in /completion, so that lengths and ends compare.
        body = {"content": text, "add_special": True, "parse_special": special, **self._route}
        reply = self._transport.post(_TOKENIZE, body)
        tokens = reply.body.get("tokens")
        if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
            raise Failure("bad_response", reply.status, {"endpoint": _TOKENIZE, "body": None})
        return tokens


class LlamaCompletions:
    """A llama.cpp server as it is asked for one token.

    Args:
        transport: the server, or a recording of it.
        settings: options for the template, and how the distribution is read.
        route: part of every request's body; tells a router which model is meant.
    """

    endpoint = _COMPLETION
    reach = BiasReach.PROBABILITIES
    most_listed = MOST_OPTIONS

    def __init__(
        self,
        transport: HttpPoster,
        settings: LlamaCppBackend,
        route: Mapping[str, str] | None = None,
    ) -> None:
        self._transport = transport
        self._settings = settings
        self._route = dict(route or {})
        self.bias = settings.readout.bias
        self.tokenizer = LlamaTokenizer(transport, self._route)

    def render(self, asked: Message, exchange: Exchange) -> Prompt:
        """The prompt that the server's template makes of a message; raises Failure."""
        body = {
            "messages": [{"role": "user", "content": asked.content}],
            "add_generation_prompt": True,
            "chat_template_kwargs": self._settings.template.kwargs,
            **self._route,
        }
        exchange.sent = {"endpoint": _TEMPLATE, "body": body}
        reply = self._transport.post(_TEMPLATE, body)
        text = reply.body.get("prompt")
        if not isinstance(text, str):
            raise Failure("bad_response", reply.status, _evidence(_TEMPLATE, reply))
        return Prompt.rendered(asked, without_thinking(text))

    def body(
        self, prompt: Prompt, model: str, biases: Mapping[int, float], candidates: int | None
    ) -> dict[str, Any]:
        """The body of the `/completion` request; the server lists a few tokens more."""
        del model
        return {
            "prompt": prompt.text,
            "n_predict": 1,
            # A reused prefix moves the probabilities between calls.
            "cache_prompt": False,
            "temperature": 1.0,
            "samplers": ["top_k", "temperature"],
            "top_k": _RANKED,
            "seed": 0,
            "logit_bias": [[token, bias] for token, bias in biases.items()],
            # Without this, the server reports probabilities from before the bias.
            "post_sampling_probs": True,
            "n_probs": (candidates or 0) + self._settings.readout.extra_probs,
            **self._route,
        }

    def post(self, body: dict[str, Any]) -> Reply:
        """The reply to a body, not read yet; raises Failure."""
        return self._transport.post(_COMPLETION, body)

    def listing(self, reply: Reply) -> Listing:
        """The tokens in a reply; raises Failure."""
        if reply.body.get("truncated") is True:
            # Older builds shorten a prompt that is too long instead of refusing it.
            raise Failure("context_overflow", reply.status, _evidence(_COMPLETION, reply))
        if not reply.body.get("completion_probabilities"):
            raise NothingListed("bad_response", reply.status, _evidence(_COMPLETION, reply))
        try:
            return listed_tokens(reply.body)
        except ValueError as error:
            evidence = _evidence(_COMPLETION, reply)
            raise Failure("bad_response", reply.status, evidence) from error

    def sent(self, exchange: Exchange) -> dict[str, Any]:
        """The last request, with the prompt's hash and the candidates once they are known."""
        if not exchange.bodies:
            return exchange.sent
        return exchange.sent | {"endpoint": _COMPLETION, "body": exchange.bodies[-1]}

    def answer_fields(self, exchange: Exchange, readout: dict[str, Any]) -> dict[str, Any]:
        """What the last answer says; one before it, which lacked a candidate, stands beside it."""
        *before, reply = exchange.replies
        response: dict[str, Any] = {"body": reply.body, "readout": readout}
        if before:
            response["body_without_all_candidates"] = before[0].body
        fields: dict[str, Any] = {
            "usage": {
                "input_tokens": _total(exchange.replies, "tokens_evaluated"),
                "output_tokens": _total(exchange.replies, "tokens_predicted"),
            },
            "response": response,
            "runtime": {
                "off_option_mass": readout["off_option_mass"],
                "timings": reply.body.get("timings"),
            },
        }
        model = reply.body.get("model")
        return fields | ({"model": model} if isinstance(model, str) and model else {})


def listed_tokens(body: Mapping[str, Any]) -> Listing:
    """The tokens that a completion lists for the first predicted one.

    Raises:
        ValueError: there is no list, or one that cannot be.
    """
    steps = body.get("completion_probabilities")
    if not isinstance(steps, list) or not steps or not isinstance(steps[0], dict):
        raise ValueError("completion_probabilities of another shape")
    listed = steps[0].get("top_probs")
    if not isinstance(listed, list):
        raise ValueError("no top_probs")
    return Listing(tuple(map(_entry, listed)))


def _entry(listed: Any) -> Entry:
    token, prob = (listed.get("id"), listed.get("prob")) if isinstance(listed, dict) else (0, "")
    if type(token) is not int or isinstance(prob, bool) or not isinstance(prob, int | float):
        raise ValueError("top_probs holds something else than ids and probabilities")
    if not 0 <= prob <= 1 + SLACK:
        raise ValueError("a probability out of range")
    logprob = math.log(prob) if prob > 0 else -math.inf
    return Entry(token, None, logprob, listed_probability=float(prob))


def _evidence(endpoint: str, reply: Reply) -> dict[str, Any]:
    return {"endpoint": endpoint, "body": reply.body}


def _total(replies: list[Reply], count: str) -> int | None:
    """The tokens that the server reports for all answers; None where it does not say."""
    counts = [reply.body.get(count) for reply in replies]
    known = [number for number in counts if type(number) is int]
    return sum(known) if len(known) == len(counts) else None


def code_of(body: Any) -> str:
    """The code for an HTTP error; llama.cpp says in `error.type` when a prompt is too long."""
    error = body.get("error") if isinstance(body, dict) else None
    kind = error.get("type") if isinstance(error, dict) else None
    return "context_overflow" if kind == "exceed_context_size_error" else "http_error"


def read_again(
    settings: LlamaCppBackend, description: Mapping[str, Any], request: Request, raw: RawAnswer
) -> Decision | None:
    """What the recorded exchange comes to; None where it does not tell which try failed.

    The rendered prompt and the candidates' token ids are taken from the recording, since only the
    server can make them; everything that follows from them is computed.
    """
    if not raw.record.ok and settings.readout.bias == MISSING_BIAS:
        return None
    body = raw.sent.get("body")
    routed = isinstance(body, dict) and "model" in body
    route = {"model": request.model} if routed else {}
    client = LlamaCompletions(_RecordedServer(raw), settings, route)
    decision = Decider(client, str(description["model"])).decide(request)
    return with_earlier_masses(decision, raw)


class _RecordedServer:
    """The server's part of one decision."""

    def __init__(self, raw: RawAnswer) -> None:
        self._raw = raw
        self._completed = raw.sent.get("endpoint") == _COMPLETION
        self._prompt = raw.sent["body"]["prompt"] if self._completed else ""
        self._tokenizer = RecordedTokenizer(raw, self._prompt)
        self._replies = self._completions()

    def post(self, path: str, body: dict[str, Any]) -> Reply:
        if path == _TEMPLATE:
            return self._rendered()
        if path == _TOKENIZE:
            return self._tokens(body["content"], special=body["parse_special"])
        return self._replies.pop(0) if self._replies else last_reply(self._raw, code_of)

    def _rendered(self) -> Reply:
        response = self._raw.response
        failed_at = response.get("endpoint") if isinstance(response, dict) else None
        if not self._completed and failed_at != _TOKENIZE:
            return last_reply(self._raw, code_of)
        return Reply(200, {"prompt": self._prompt})

    def _tokens(self, text: str, *, special: bool) -> Reply:
        if not self._completed:
            record = self._raw.record
            raise Failure(record.error or "", record.status_code, self._raw.response)
        return Reply(200, {"tokens": self._tokenizer(text, special=special)})

    def _completions(self) -> list[Reply]:
        """The replies that were kept, in their order."""
        response, status = self._raw.response, self._raw.record.status_code or 200
        if not self._completed or not isinstance(response, dict):
            return []
        if not self._raw.record.ok:
            strong = any(bias == MISSING_BIAS for _, bias in self._raw.sent["body"]["logit_bias"])
            # Of the attempt that failed at last, the answer before it is not kept.
            return [Reply(200, {})] if strong else []
        before = response.get("body_without_all_candidates")
        bodies = [before, response["body"]] if before is not None else [response["body"]]
        return [Reply(status, body) for body in bodies]
