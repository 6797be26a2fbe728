"""One request for the next token and the probabilities that it is listed with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jevexp.backends.openai.connection import first_choice, with_options
from jevexp.backends.openai.listing import Listing, listing
from jevexp.backends.openai.native import VLLM
from jevexp.backends.transport import Failure, HttpPoster, Reply
from jevexp.settings import OpenAILogprobsBackend

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


@dataclass(frozen=True, slots=True)
class Asked:
    """A user message, and the prompt that the server makes of it where it tells."""

    content: str
    prompt: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, and the tokens in it."""

    reply: Reply
    listing: Listing


class Asking:
    """Asks for one token at a time over one connection.

    Args:
        route: "chat" or "completions".
        family: the server's, which decides about special tokens in a completion's prompt.
        extras: further fields that the server turned out to need.
    """

    def __init__(
        self,
        transport: HttpPoster,
        settings: OpenAILogprobsBackend,
        *,
        route: str,
        family: str | None,
        extras: Mapping[str, Any],
    ) -> None:
        self._transport = transport
        self._settings = settings
        self._extras = dict(extras)
        self.endpoint = CHAT if route == "chat" else COMPLETIONS
        if family == VLLM and self.endpoint == COMPLETIONS:
            # The rendered prompt has them already.
            self._extras["add_special_tokens"] = False

    def body(
        self, asked: Asked, model: str, top: int, bias: Mapping[int, float] | None = None
    ) -> dict[str, Any]:
        """The body that asks for `top` tokens, with a bias by token id."""
        body: dict[str, Any] = {"model": model}
        if self.endpoint == CHAT:
            body |= {
                "messages": [{"role": "user", "content": asked.content}],
                "chat_template_kwargs": self._settings.template.kwargs,
                "logprobs": True,
                "top_logprobs": top,
            }
        else:
            body |= {"prompt": asked.prompt, "logprobs": top}
        # What a model's own defaults would cut off.
        body |= {"max_tokens": 1, "temperature": 1, "top_p": 1, **self._extras}
        if bias:
            body["logit_bias"] = {str(token): value for token, value in bias.items()}
        return with_options(body, self._settings)

    def ask(self, body: dict[str, Any]) -> Answer:
        """Ask once; raises Failure, `no_logprobs` where the answer lists nothing usable."""
        return self.read(self.post(body))

    def post(self, body: dict[str, Any]) -> Reply:
        """The reply to a body, not read yet; raises Failure."""
        return self._transport.post(self.endpoint, body)

    def read(self, reply: Reply) -> Answer:
        """The tokens in a reply; raises Failure, `no_logprobs` where it lists nothing usable."""
        evidence = {"endpoint": self.endpoint, "body": reply.body}
        try:
            return Answer(reply, listing(first_choice(reply)))
        except ValueError as error:
            raise Failure("no_logprobs", reply.status, evidence) from error
        except Failure as failure:
            raise Failure(failure.code, reply.status, evidence) from failure
