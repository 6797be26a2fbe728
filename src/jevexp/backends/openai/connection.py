"""An OpenAI-compatible server: reached or started, its models, tokenizer and chat template.

Two families offer the last two beside OpenAI's routes. llama.cpp takes `content` at `/tokenize` and
renders at `/apply-template`. vLLM takes `prompt`, or `messages`, which it renders first, and puts
tokens together again at `/detokenize`; SGLang takes `prompt` alone.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from jevexp.backends.connection import Connection, unusable
from jevexp.backends.llama_cpp.client import TEMPLATE, prompt_of, template_body, tokenize, tokens_of
from jevexp.backends.readout import Tokenizer
from jevexp.backends.served_model import listed_models
from jevexp.backends.transport import Failure, Reply, Transport, total
from jevexp.settings.backends import OpenAIBackend

# The families of servers that have a tokenizer of a known kind.
LLAMA_CPP, VLLM = "llama.cpp", "vllm"
# What a server that cannot be used should be, and what to do about it.
UNUSABLE = (
    "an OpenAI-compatible server",
    "set backend.base_url=URL to where /v1/chat/completions is, without that path",
)
_OVERFLOWS = ("exceed_context_size_error", "context_length_exceeded")


def find_model(connection: Connection, settings: OpenAIBackend, alias: str) -> str | None:
    """What the server calls the model, or None where it does not say.

    Raises InputError where the server cannot be used.
    """
    try:
        listed = listed_models(connection.transport.get("/v1/models").body)
    except Failure as failure:
        # Some gateways list nothing and answer all the same.
        if failure.status in (None, 401, 403) or failure.status // 100 in (3, 5):
            raise unusable(
                failure, connection.url, *UNUSABLE, key_env=settings.key_env
            ) from failure
        return None
    names: list[str] = [entry["id"] for entry in listed]
    if alias in names:
        return alias
    return names[0] if len(names) == 1 else None


def code_of(body: Any) -> str:
    """The code for an HTTP error; some servers say when a prompt is too long."""
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict) and any(error.get(key) in _OVERFLOWS for key in ("type", "code")):
        return "context_overflow"
    return "http_error"


def with_options(body: Mapping[str, Any], settings: OpenAIBackend) -> dict[str, Any]:
    """A request's body with the configured fields added and removed."""
    whole = {**body, **settings.options}
    return {name: value for name, value in whole.items() if name not in settings.remove}


def first_choice(reply: Reply) -> Mapping[str, Any]:
    """The first of an answer's choices; raises Failure."""
    choices = reply.body.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    raise Failure("bad_response", reply.status)


def usage(replies: Sequence[Reply]) -> dict[str, int | None]:
    """The tokens that the server reports for all answers; None where it does not say."""
    reported = [reply.body.get("usage") for reply in replies]
    parts = [part if isinstance(part, dict) else {} for part in reported]
    return {
        "input_tokens": total(parts, "prompt_tokens"),
        "output_tokens": total(parts, "completion_tokens"),
    }


def tokenize_rendered(
    transport: Transport, route: Mapping[str, str], text: str, *, special: bool = True
) -> list[int]:
    """The tokens of a rendered prompt on vLLM, which always reads its specials as such."""
    del special
    return tokens_of(transport, {**route, "prompt": text, "add_special_tokens": False})


def render(
    transport: Transport,
    family: str,
    kwargs: Mapping[str, Any],
    route: Mapping[str, str],
    content: str,
) -> str:
    """The prompt that the server's template makes of one user message; raises Failure."""
    body = template_body(content, kwargs, route)
    if family == LLAMA_CPP:
        return prompt_of(transport, TEMPLATE, body)
    return prompt_of(transport, "/detokenize", {**route, "tokens": tokens_of(transport, body)})


def find_tokenizer(
    transport: Transport, route: Mapping[str, str]
) -> tuple[str | None, Tokenizer | None]:
    """The server's family and tokenizer, or None twice; raises Failure where it does not answer."""
    # Each family's server may answer the other's request, with nothing in it.
    families: dict[str, Tokenizer] = {
        LLAMA_CPP: partial(tokenize, transport, route),
        VLLM: partial(tokenize_rendered, transport, route),
    }
    for family, tokenizer in families.items():
        try:
            if tokenizer("yes"):
                return family, tokenizer
        except Failure as failure:
            if failure.status is None:
                raise
    return None, None
