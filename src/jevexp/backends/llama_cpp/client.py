"""llama.cpp's own routes: its template, its tokenizer, and one token with its probabilities."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from jevexp.backends.next_token import (
    BiasReach,
    CompletionClient,
    Decider,
    Exchange,
    NothingListed,
    Prompt,
    RecordedTokenizer,
    with_earlier_masses,
)
from jevexp.backends.prompt import MOST_OPTIONS, Message, without_thinking
from jevexp.backends.readout import MISSING_BIAS, Entry, Listing, Tokenizer, logprob_of
from jevexp.backends.rereading import RawAnswer, last_reply
from jevexp.backends.transport import Failure, HttpPoster, Reply, is_number, total
from jevexp.core.decision import Decision, Request
from jevexp.settings import LlamaCppBackend

TEMPLATE, _TOKENIZE, _COMPLETION = "/apply-template", "/tokenize", "/completion"
# What keeps the probabilities whole and the same on every call: they are those from after the bias,
# and no reused prefix moves them. Ranking the whole of a large vocabulary takes the server as long
# as some models need for a short prompt. The tokens beyond `top_k`, which a candidate with a bias
# is never among, hold less than 1e-4 of the mass outside the candidates; vocabularies up to this
# size are read whole.
UNCUT: Mapping[str, Any] = {
    "post_sampling_probs": True,
    "samplers": ["top_k", "temperature"],
    "top_k": 1 << 16,
    "cache_prompt": False,
    "seed": 0,
}


def tokenize(
    transport: HttpPoster, route: Mapping[str, str], text: str, *, special: bool = True
) -> list[int]:
    """The tokens of a prompt, as in a `/completion`; raises Failure.

    `route` is part of the body. With `special=False`, control tokens are read as plain text.
    """
    # Specials at the start as in /completion, so that lengths and ends compare.
    body = {"content": text, "add_special": True, "parse_special": special, **route}
    return tokens_of(transport, body)


def tokens_of(transport: HttpPoster, body: dict[str, Any]) -> list[int]:
    """What `/tokenize` makes of a body; raises Failure."""
    reply = transport.post(_TOKENIZE, body)
    tokens = reply.body.get("tokens")
    if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
        raise Failure("bad_response", reply.status, reply.evidence(_TOKENIZE))
    return tokens


def template_body(
    content: str, kwargs: Mapping[str, Any], route: Mapping[str, str]
) -> dict[str, Any]:
    """The body of a request to render one user message with the server's own template."""
    messages = [{"role": "user", "content": content}]
    fixed = {"add_generation_prompt": True, "chat_template_kwargs": dict(kwargs)}
    return {"messages": messages, **fixed, **route}


def prompt_of(transport: HttpPoster, endpoint: str, body: dict[str, Any]) -> str:
    """The prompt that a route answers with; raises Failure."""
    reply = transport.post(endpoint, body)
    prompt = reply.body.get("prompt")
    if isinstance(prompt, str):
        return prompt
    raise Failure("bad_response", reply.status, reply.evidence(endpoint))


class LlamaCompletions(CompletionClient):
    """A llama.cpp server as it is asked for one token, or a recording of it.

    `route` is part of every request's body; it tells a router which model is meant.
    """

    endpoint = _COMPLETION
    reach = BiasReach.PROBABILITIES
    most_listed = MOST_OPTIONS

    def __init__(
        self, transport: HttpPoster, settings: LlamaCppBackend, route: Mapping[str, str]
    ) -> None:
        self.transport = transport
        self.bias = settings.readout.bias
        self.tokenizer: Tokenizer | None = partial(tokenize, transport, route)
        self._settings = settings
        self._route = route

    def render(self, user: Message, exchange: Exchange) -> Prompt:
        """The prompt that the server's template makes of a message; raises Failure."""
        body = template_body(user.content, self._settings.template.kwargs, self._route)
        exchange.sent = {"endpoint": TEMPLATE, "body": body}
        text = prompt_of(self.transport, TEMPLATE, body)
        return Prompt.rendered(user, without_thinking(text))

    def body(
        self, prompt: Prompt, model: str, biases: Mapping[int, float], candidates: int | None
    ) -> dict[str, Any]:
        """The body of the `/completion` request; the server lists a few tokens more."""
        del model
        return {
            "prompt": prompt.text,
            "n_predict": 1,
            "cache_prompt": UNCUT["cache_prompt"],
            "temperature": 1.0,
            "samplers": UNCUT["samplers"],
            "top_k": UNCUT["top_k"],
            "seed": UNCUT["seed"],
            "logit_bias": [[token, bias] for token, bias in biases.items()],
            "post_sampling_probs": UNCUT["post_sampling_probs"],
            "n_probs": (candidates or 0) + self._settings.readout.extra_probs,
            **self._route,
        }

    def listing(self, reply: Reply) -> Listing:
        """The tokens in a reply; raises Failure."""
        if reply.body.get("truncated") is True:
            # Older builds shorten a prompt that is too long instead of refusing it.
            raise self.failure(reply, "context_overflow")
        if not reply.body.get("completion_probabilities"):
            raise self.failure(reply, "bad_response", NothingListed)
        try:
            return listed_tokens(reply.body)
        except ValueError as error:
            raise self.failure(reply, "bad_response") from error

    def sent(self, exchange: Exchange) -> dict[str, Any]:
        """The last request, with the prompt's hash and the candidates once they are known."""
        if not exchange.bodies:
            return exchange.sent
        return exchange.sent | {"endpoint": _COMPLETION, "body": exchange.bodies[-1]}

    def answer_fields(self, exchange: Exchange, readout: dict[str, Any]) -> dict[str, Any]:
        """What the last answer says; one before it, which lacked a candidate, stands beside it."""
        *before, last = [reply.body for reply in exchange.replies]
        response = {"body": last, "readout": readout}
        if before:
            response["body_without_all_candidates"] = before[0]
        return {
            "model": last.get("model"),
            "usage": {
                "input_tokens": total([*before, last], "tokens_evaluated"),
                "output_tokens": total([*before, last], "tokens_predicted"),
            },
            "response": response,
            "runtime": {
                "off_option_mass": readout["off_option_mass"],
                "timings": last.get("timings"),
            },
        }


def listed_tokens(body: Mapping[str, Any]) -> Listing:
    """The tokens that a completion lists for the first predicted one; raises ValueError."""
    match body.get("completion_probabilities"):
        case [{"top_probs": list(listed)}, *_]:
            return Listing(tuple(map(_entry, listed)))
    raise ValueError("completion_probabilities of another shape")


def _entry(listed: Any) -> Entry:
    match listed:
        case {"id": int(token), "prob": prob} if type(token) is int and is_number(prob):
            return Entry(token, None, logprob_of(prob), listed_probability=float(prob))
    raise ValueError("top_probs holds something else than ids and probabilities")


def code_of(body: Any) -> str:
    """The code for an HTTP error; llama.cpp says in `error.type` when a prompt is too long."""
    match body:
        case {"error": {"type": "exceed_context_size_error"}}:
            return "context_overflow"
    return "http_error"


def read_again(
    settings: LlamaCppBackend, description: Mapping[str, Any], request: Request, raw: RawAnswer
) -> Decision | None:
    """What the recorded exchange comes to; None where it does not tell which try failed.

    The rendered prompt and the candidates' token ids are taken from the recording, since only the
    server can make them; everything that follows from them is computed.
    """
    if not raw.record.ok and settings.readout.bias == MISSING_BIAS:
        return None
    route = {"model": request.model} if "model" in raw.sent.get("body", {}) else {}
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
        raw = self._raw
        if path == _COMPLETION:
            return self._replies.pop(0) if self._replies else last_reply(raw, code_of)
        if path == _TOKENIZE:
            if not self._completed:
                raise Failure(raw.record.error or "", raw.record.status_code, raw.response)
            tokens = self._tokenizer(body["content"], special=body["parse_special"])
            return Reply(200, {"tokens": tokens})
        failed_at = raw.response.get("endpoint") if isinstance(raw.response, dict) else None
        if not self._completed and failed_at != _TOKENIZE:
            return last_reply(raw, code_of)
        return Reply(200, {"prompt": self._prompt})

    def _completions(self) -> list[Reply]:
        """The replies that were kept, in their order."""
        response, record = self._raw.response, self._raw.record
        if not self._completed or not isinstance(response, dict):
            return []
        if not record.ok:
            strong = any(bias == MISSING_BIAS for _, bias in self._raw.sent["body"]["logit_bias"])
            # When the second attempt failed, the answer to the first is not kept.
            return [Reply(200, {})] if strong else []
        before = response.get("body_without_all_candidates")
        bodies = [before, response["body"]] if before is not None else [response["body"]]
        return [Reply(record.status_code or 200, body) for body in bodies]
