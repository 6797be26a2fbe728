"""One request for the next token on an OpenAI-compatible server, and what its answer lists.

A chat completion, and also llama.cpp's completion, lists tokens as

    "logprobs": {"content": [{"token": …, "logprob": …, "top_logprobs": [{"token": …, …}, …]}]}

with `prob` and `top_probs` instead where llama.cpp reports what it sampled from. The older shape of
a completion:

    "logprobs": {"tokens": […], "token_logprobs": […], "top_logprobs": [{TOKEN: LOGPROB, …}]}
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jevexp.backends.next_token import (
    CONTEXT,
    BiasReach,
    CompletionClient,
    Decider,
    Exchange,
    NothingListed,
    Prompt,
    RecordedTokenizer,
    with_earlier_masses,
)
from jevexp.backends.openai.connection import VLLM, code_of, first_choice, usage, with_options
from jevexp.backends.prompt import Message, without_thinking
from jevexp.backends.readout import SLACK, Entry, Listing, Tokenizer, logprob_of
from jevexp.backends.rereading import RawAnswer, last_reply
from jevexp.backends.transport import Failure, HttpPoster, Reply, is_number
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


class OpenAICompletions(CompletionClient):
    """An OpenAI-compatible server as it is asked for one token, with what it was found to have."""

    def __init__(
        self, transport: HttpPoster, settings: OpenAILogprobsBackend, features: Features
    ) -> None:
        self.transport = transport
        self.tokenizer = features.tokenizer
        self.reach = features.logit_bias
        self.bias = settings.readout.bias
        self.most_listed = features.top
        self.endpoint = CHAT if features.route == "chat" else COMPLETIONS
        self._settings = settings
        self._renderer = features.renderer
        self._extras = dict(features.extras)
        if features.family == VLLM and self.endpoint == COMPLETIONS:
            # The rendered prompt has its special tokens already.
            self._extras["add_special_tokens"] = False

    def render(self, user: Message, exchange: Exchange) -> Prompt:
        """The prompt, as far as the server shows it; raises Failure."""
        if self._renderer is None:
            return Prompt(user.content)
        rendered = self._renderer(user.content)
        text = without_thinking(rendered)
        if text != rendered and self.endpoint == CHAT:
            # The next token would be a thought.
            raise Failure("thinking_open")
        prompt = Prompt.rendered(user, text)
        exchange.sent = dict(prompt.evidence)
        return prompt

    def body(
        self, prompt: Prompt, model: str, biases: Mapping[int, float], candidates: int | None
    ) -> dict[str, Any]:
        """The body that asks for the candidates and a few tokens more, or for all there can be."""
        top = self.most_listed if candidates is None else min(candidates + _EXTRA, self.most_listed)
        if self.endpoint == CHAT:
            asked: dict[str, Any] = {
                "messages": [{"role": "user", "content": prompt.content}],
                "chat_template_kwargs": self._settings.template.kwargs,
                "logprobs": True,
                "top_logprobs": top,
            }
        else:
            asked = {"prompt": prompt.text, "logprobs": top}
        # The last two turn off what a model's own defaults would cut off.
        body = {"model": model, **asked, "max_tokens": 1, "temperature": 1, "top_p": 1}
        body |= self._extras
        if biases:
            body["logit_bias"] = {str(token): bias for token, bias in biases.items()}
        return with_options(body, self._settings)

    def listing(self, reply: Reply) -> Listing:
        """The tokens in a reply; raises NothingListed, or Failure where it has no choices."""
        try:
            return listing(first_choice(reply))
        except ValueError as error:
            raise self.failure(reply, "no_logprobs", NothingListed) from error
        except Failure as failure:
            raise self.failure(reply, failure.code) from failure

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
        first, *further = [reply.body for reply in exchange.replies]
        response: dict[str, Any] = {"body": first, "readout": readout}
        if further:
            response["further_bodies"] = further
        return {
            "model": first.get("model"),
            "usage": usage(exchange.replies),
            "response": response,
            "runtime": {
                "off_option_mass": readout["off_option_mass"],
                "requests": len(exchange.replies),
                "timings": first.get("timings"),
            },
        }


def listing(choice: Mapping[str, Any]) -> Listing:
    """What the first predicted token of a choice comes with; raises ValueError where it is none."""
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict):
        raise ValueError("no logprobs")
    if "content" in logprobs:
        first = _first(logprobs["content"])
        listed = first.get("top_logprobs", first.get("top_probs"))
        if not isinstance(listed, list) or not listed:
            raise ValueError("no top_logprobs")
        sampled, others = _entry(first), list(map(_entry, listed))
    else:
        sampled = _named(
            _first(logprobs.get("tokens"), str), _first(logprobs.get("token_logprobs"), float)
        )
        others = [_named(*pair) for pair in _first(logprobs.get("top_logprobs")).items()]
    entries: dict[Any, Entry] = {}
    for entry in [*others, sampled]:
        # The sampled token is often among the others, and then the same.
        entries.setdefault((entry.id, entry.text, round(entry.logprob, 4)), entry)
    return Listing(tuple(entries.values()), sampled)


def _first(values: Any, kind: type = dict) -> Any:
    if not isinstance(values, list) or not values or not isinstance(values[0], kind):
        raise ValueError("logprobs of another shape")
    return values[0]


def _entry(part: Any) -> Entry:
    if not isinstance(part, dict):
        raise ValueError("something else than a token is listed")
    logprob, prob, token = part.get("logprob"), part.get("prob"), part.get("id")
    if "logprob" not in part and is_number(prob):
        logprob = logprob_of(prob)
    named = _named(part.get("token"), logprob)
    return replace(named, id=token) if type(token) is int else named


def _named(token: Any, logprob: Any) -> Entry:
    if not isinstance(token, str):
        raise ValueError("a token without a text")
    if not is_number(logprob):
        raise ValueError("a token without a probability")
    if not logprob <= SLACK:
        raise ValueError("a log-probability above zero")
    if match := _TOKEN_ID.fullmatch(token):
        return Entry(int(match[1]), None, float(logprob))
    return Entry(None, token, float(logprob))


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
