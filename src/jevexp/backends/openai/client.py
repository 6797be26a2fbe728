"""One request for the next token on an OpenAI-compatible server, and what its answer lists.

A chat completion, and also llama.cpp's completion, lists tokens as

    "logprobs": {"content": [{"token": …, "logprob": …, "top_logprobs": [{"token": …, …}, …]}]}

with `prob` and `top_probs` instead where llama.cpp reports what it sampled from. The older shape of
a completion:

    "logprobs": {"tokens": […], "token_logprobs": […], "top_logprobs": [{TOKEN: LOGPROB, …}]}
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jevexp.backends.next_token import (
    CONTEXT,
    BiasReach,
    Decider,
    Exchange,
    NothingListed,
    Prompt,
    RecordedTokenizer,
    prompt_hash,
    with_earlier_masses,
)
from jevexp.backends.openai.connection import (
    VLLM,
    answering_model,
    code_of,
    first_choice,
    usage,
    with_options,
)
from jevexp.backends.prompt import Message, without_thinking
from jevexp.backends.readout import SLACK, Entry, Listing, Tokenizer
from jevexp.backends.rereading import RawAnswer, last_reply
from jevexp.backends.transport import Failure, HttpPoster, Reply
from jevexp.core.decision import Decision, Request
from jevexp.settings import OpenAILogprobsBackend

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
# Tokens asked for beyond the candidates.
_EXTRA = 4
_TOKEN_ID = re.compile(r"token_id:(\d+)")


@dataclass(frozen=True, slots=True)
class Features:
    """What a server was found to have.

    `family` is the kind of server by its tokenizer, `tokens` how the listed tokens are named, `top`
    how many of them come, `extras` are further fields that it turned out to need.
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


class OpenAICompletions:
    """An OpenAI-compatible server as it is asked for one token, with what it was found to have."""

    def __init__(
        self, transport: HttpPoster, settings: OpenAILogprobsBackend, features: Features
    ) -> None:
        self._transport = transport
        self._settings = settings
        self._renderer = features.renderer
        self.tokenizer = features.tokenizer
        self.reach = features.logit_bias
        self.bias = settings.readout.bias
        self.most_listed = features.top
        self.endpoint = CHAT if features.route == "chat" else COMPLETIONS
        self._extras = dict(features.extras)
        if features.family == VLLM and self.endpoint == COMPLETIONS:
            # The rendered prompt has its special tokens already.
            self._extras["add_special_tokens"] = False

    def render(self, asked: Message, exchange: Exchange) -> Prompt:
        """The prompt, as far as the server shows it; raises Failure."""
        if self._renderer is None:
            return Prompt(asked.content)
        rendered = self._renderer(asked.content)
        text = without_thinking(rendered)
        if text != rendered and self.endpoint == CHAT:
            # The next token would be a thought.
            raise Failure("thinking_open")
        prompt = Prompt.rendered(asked, text)
        exchange.sent = dict(prompt_hash(prompt))
        return prompt

    def body(
        self, prompt: Prompt, model: str, biases: Mapping[int, float], candidates: int | None
    ) -> dict[str, Any]:
        """The body that asks for the candidates and a few tokens more, or for all there can be."""
        top = self.most_listed if candidates is None else min(candidates + _EXTRA, self.most_listed)
        body: dict[str, Any] = {"model": model}
        if self.endpoint == CHAT:
            body |= {
                "messages": [{"role": "user", "content": prompt.content}],
                "chat_template_kwargs": self._settings.template.kwargs,
                "logprobs": True,
                "top_logprobs": top,
            }
        else:
            body |= {"prompt": prompt.text, "logprobs": top}
        # What a model's own defaults would cut off.
        body |= {"max_tokens": 1, "temperature": 1, "top_p": 1, **self._extras}
        if biases:
            body["logit_bias"] = {str(token): bias for token, bias in biases.items()}
        return with_options(body, self._settings)

    def post(self, body: dict[str, Any]) -> Reply:
        """The reply to a body, not read yet; raises Failure."""
        return self._transport.post(self.endpoint, body)

    def listing(self, reply: Reply) -> Listing:
        """The tokens in a reply; raises NothingListed, or Failure where it has no choices."""
        evidence = {"endpoint": self.endpoint, "body": reply.body}
        try:
            return listing(first_choice(reply))
        except ValueError as error:
            raise NothingListed("no_logprobs", reply.status, evidence) from error
        except Failure as failure:
            raise Failure(failure.code, reply.status, evidence) from failure

    def sent(self, exchange: Exchange) -> dict[str, Any]:
        """The first request; further ones are like it but for their bias."""
        if not exchange.bodies:
            return exchange.sent
        first, *further = exchange.bodies
        sent = exchange.sent | {"endpoint": self.endpoint, "body": first}
        if further:
            sent["further_biases"] = [body.get("logit_bias") for body in further]
        return sent

    def answer_fields(self, exchange: Exchange, readout: dict[str, Any]) -> dict[str, Any]:
        """What the first answer says, with the bodies of all."""
        first, *further = exchange.replies
        response: dict[str, Any] = {"body": first.body, "readout": readout}
        if further:
            response["further_bodies"] = [reply.body for reply in further]
        fields: dict[str, Any] = {
            "usage": usage(exchange.replies),
            "response": response,
            "runtime": {
                "off_option_mass": readout["off_option_mass"],
                "requests": len(exchange.replies),
                "timings": first.body.get("timings"),
            },
        }
        model = answering_model(first, "")
        return fields | ({"model": model} if model else {})


def listing(choice: Mapping[str, Any]) -> Listing:
    """What the first predicted token of a choice comes with.

    Raises:
        ValueError: there is no list, or one that cannot be.
    """
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict):
        raise ValueError("no logprobs")
    if "content" in logprobs:
        first = _first(logprobs["content"])
        listed = first.get("top_logprobs", first.get("top_probs"))
        if not isinstance(listed, list) or not listed:
            raise ValueError("no top_logprobs")
        sampled, others = _entry(first), [_entry(part) for part in listed]
    else:
        sampled = _named(
            _first(logprobs.get("tokens"), str), _first(logprobs.get("token_logprobs"), float)
        )
        top = _first(logprobs.get("top_logprobs"))
        others = [_named(token, logprob) for token, logprob in top.items()]
    return Listing(tuple(_distinct([*others, sampled])), sampled)


def _distinct(entries: Iterable[Entry]) -> Iterable[Entry]:
    """The sampled token is often among the others, and then the same."""
    seen = set()
    for entry in entries:
        key = (entry.id, entry.text, round(entry.logprob, 4))
        if key not in seen:
            seen.add(key)
            yield entry


def _first(values: Any, kind: type = dict) -> Any:
    if not isinstance(values, list) or not values or not isinstance(values[0], kind):
        raise ValueError("logprobs of another shape")
    return values[0]


def _entry(part: Any) -> Entry:
    if not isinstance(part, dict):
        raise ValueError("something else than a token is listed")
    token = part.get("id")
    named = _named(part.get("token"), _logprob(part))
    return Entry(token if type(token) is int else named.id, named.text, named.logprob)


def _named(token: Any, logprob: Any) -> Entry:
    if not isinstance(token, str):
        raise ValueError("a token without a text")
    value = _checked(logprob)
    if match := _TOKEN_ID.fullmatch(token):
        return Entry(int(match[1]), None, value)
    return Entry(None, token, value)


def _logprob(part: Mapping[str, Any]) -> Any:
    prob = part.get("prob")
    if "logprob" in part or isinstance(prob, bool) or not isinstance(prob, int | float):
        return part.get("logprob")
    if not 0 <= prob <= 1 + SLACK:
        raise ValueError("a probability out of range")
    return math.log(prob) if prob > 0 else -math.inf


def _checked(logprob: Any) -> float:
    if isinstance(logprob, bool) or not isinstance(logprob, int | float):
        raise ValueError("a token without a probability")
    if not logprob <= SLACK:
        raise ValueError("a log-probability above zero")
    return float(logprob)


def read_again(
    settings: OpenAILogprobsBackend,
    description: Mapping[str, Any],
    request: Request,
    raw: RawAnswer,
) -> Decision | None:
    """What the recorded exchange comes to; None where not all of it was kept.

    The prompt and the candidates' token ids are taken from the recording, since only the server
    can make them. On the chat route nobody saw the prompt, and its hash is taken as it is.
    """
    sent, response = raw.sent, raw.response
    asked = "body" in sent
    if not raw.record.ok and request.question.options and (not asked or "further_biases" in sent):
        # Failed before the first request for a token, or after several: the others are not kept.
        return None
    prompt = sent.get("body", {}).get("prompt")
    text = prompt if isinstance(prompt, str) else CONTEXT
    described = description["features"]
    tokenizes = "candidates" in sent and described["tokenize"]
    features = Features(
        route=described["route"],
        family=described["tokenize"] or described["chat_template_rendering"],
        tokenizer=RecordedTokenizer(raw, text) if tokenizes else None,
        renderer=(lambda _content: text) if described["chat_template_rendering"] else None,
        tokens=described["tokens"],
        logit_bias=BiasReach(described["logit_bias"]),
        top=described["max_top_logprobs"],
        extras=described["extra_fields"],
    )
    client = OpenAICompletions(_RecordedReplies(raw), settings, features)
    decision = Decider(client, description["model"]).decide(request)
    if sent.get("endpoint") == CHAT and "prompt_sha256" in sent and response is not None:
        decision.request["sent"]["prompt_sha256"] = sent["prompt_sha256"]
    return with_earlier_masses(decision, raw)


class _RecordedReplies:
    """The replies to one decision's requests, in their order."""

    def __init__(self, raw: RawAnswer) -> None:
        self._raw = raw
        self._bodies: list[Any] = []
        if raw.record.ok:
            self._bodies = [raw.response["body"], *raw.response.get("further_bodies", [])]

    def post(self, path: str, body: dict[str, Any]) -> Reply:
        del path, body
        if not self._raw.record.ok:
            return last_reply(self._raw, code_of)
        if not self._bodies:
            raise Failure("not_in_the_recording")
        return Reply(self._raw.record.status_code or 200, self._bodies.pop(0))
