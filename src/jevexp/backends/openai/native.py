"""What servers offer beside OpenAI's routes: their tokenizer, and their chat template.

Two families are known. llama.cpp takes `content` at `/tokenize` and renders at `/apply-template`.
vLLM takes `prompt`, or `messages`, which it renders first, and puts tokens together again at
`/detokenize`; SGLang takes `prompt` alone.
"""

from collections.abc import Mapping
from typing import Any

from jevexp.backends.candidates import Tokenizer
from jevexp.backends.llama_cpp.tokens import LlamaTokenizer
from jevexp.backends.transport import Failure, Transport

LLAMA_CPP, VLLM = "llama.cpp", "vllm"


class VllmTokenizer:
    """Tokens of a prompt that is already rendered, specials included."""

    def __init__(self, transport: Transport, route: Mapping[str, str]) -> None:
        self._transport = transport
        self._route = dict(route)

    def __call__(self, text: str, *, special: bool = True) -> list[int]:
        """The tokens of a prompt; control tokens are always read as such."""
        del special
        body = {**self._route, "prompt": text, "add_special_tokens": False}
        return _tokens(self._transport, body)


class Renderer:
    """Messages as the prompt that the server's template makes of them."""

    def __init__(
        self, transport: Transport, family: str, kwargs: Mapping[str, Any], route: Mapping[str, str]
    ) -> None:
        self._transport = transport
        self._family = family
        self._fixed = {**route, "add_generation_prompt": True, "chat_template_kwargs": dict(kwargs)}

    def __call__(self, content: str) -> str:
        """The prompt for one user message; raises Failure."""
        body = {"messages": [{"role": "user", "content": content}], **self._fixed}
        if self._family == LLAMA_CPP:
            endpoint = "/apply-template"
            reply = self._transport.post(endpoint, body)
        else:
            endpoint = "/detokenize"
            tokens = _tokens(self._transport, body)
            model = {"model": body["model"]} if "model" in body else {}
            reply = self._transport.post(endpoint, {**model, "tokens": tokens})
        prompt = reply.body.get("prompt")
        if not isinstance(prompt, str):
            evidence = {"endpoint": endpoint, "body": reply.body}
            raise Failure("bad_response", reply.status, evidence)
        return prompt


def find_tokenizer(
    transport: Transport, route: Mapping[str, str]
) -> tuple[str | None, Tokenizer | None]:
    """The server's family and tokenizer, or None twice.

    Raises:
        Failure: the server does not answer at all.
    """
    # Each family's server may answer the other's request, with nothing in it.
    families: dict[str, Tokenizer] = {
        LLAMA_CPP: LlamaTokenizer(transport, route),
        VLLM: VllmTokenizer(transport, route),
    }
    for family, tokenizer in families.items():
        try:
            if tokenizer("yes"):
                return family, tokenizer
        except Failure as failure:
            _unless_silent(failure)
    return None, None


def find_renderer(
    transport: Transport,
    family: str,
    tokenizer: Tokenizer,
    kwargs: Mapping[str, Any],
    route: Mapping[str, str],
    *,
    probe: str,
) -> Renderer | None:
    """The server's template, if the prompt that it makes of `probe` holds together.

    Raises:
        Failure: the server does not answer at all.
    """
    renderer = Renderer(transport, family, kwargs, route)
    try:
        prompt = renderer(probe)
        return renderer if probe in prompt and tokenizer(prompt) else None
    except Failure as failure:
        _unless_silent(failure)
        return None


def _unless_silent(failure: Failure) -> None:
    if failure.status is None:
        raise failure


def _tokens(transport: Transport, body: Mapping[str, Any]) -> list[int]:
    reply = transport.post("/tokenize", dict(body))
    tokens = reply.body.get("tokens")
    if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
        raise Failure("bad_response", reply.status, {"endpoint": "/tokenize", "body": reply.body})
    return tokens
