"""The server's own tokenizer."""

from collections.abc import Mapping

from jevexp.backends.transport import Failure, HttpPoster


class LlamaTokenizer:
    """Tokens as in a `/completion`; `route` is part of every request's body."""

    def __init__(self, transport: HttpPoster, route: Mapping[str, str] | None = None) -> None:
        self._transport = transport
        self._route = dict(route or {})

    def __call__(self, text: str, *, special: bool = True) -> list[int]:
        """The tokens of a prompt; raises Failure."""
        # Specials at the start as in /completion, so that lengths and ends compare.
        body = {"content": text, "add_special": True, "parse_special": special, **self._route}
        reply = self._transport.post("/tokenize", body)
        tokens = reply.body.get("tokens")
        if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
            raise Failure("bad_response", reply.status, {"endpoint": "/tokenize", "body": None})
        return tokens
