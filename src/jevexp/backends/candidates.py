"""The token that each option's symbol is, where the prompt ends."""

from collections.abc import Iterable
from typing import Any, Protocol

from jevexp.backends.transport import Failure

# What the ids depend on: the prompt's fixed end, its last token, the symbols.
_Key = tuple[str, int | None, tuple[str, ...]]


class Tokenizer(Protocol):
    """A server's tokenizer."""

    def __call__(self, text: str, *, special: bool = True) -> list[int]:
        """The tokens of a prompt that is `text`; raises Failure.

        With `special=False`, control tokens in it are read as plain text.
        """


class Candidates:
    """Finds token ids by asking the server, and remembers them where that is sound.

    A symbol is looked up in context, as what it adds to the tokenized prompt: on its own, many
    tokenizers would put a space before it or join it to what precedes.

    What a prompt ends with decides which token a symbol becomes. Where a control token, such as
    the one that ends the user's turn, stands in the prompt's fixed end, the tokenizer cuts the
    text there and what follows cannot depend on the state; the ids then hold for every prompt
    with that end. Where the template has none, they hold for every prompt with the same last
    token: byte pair encodings, ranked by merges or by scores, are exactly the sequences of which
    each two neighbours are an encoding. Learning the last token costs one request a prompt.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokens = tokenizer
        self._ids: dict[_Key, tuple[int, ...]] = {}
        self._cut: dict[str, bool] = {}

    def ids(self, prompt: str, end: str, symbols: Iterable[str]) -> tuple[int, ...]:
        """One token id a symbol.

        Args:
            prompt: the rendered prompt.
            end: its fixed end, which no state can change; empty where that is not known.
            symbols: what the model may answer.

        Raises:
            Failure: `candidate_not_one_token`, or the request for tokens failed.
        """
        wanted = tuple(symbols)
        tokens: list[int] | None = None
        last: int | None = None
        if not self._is_cut(end):
            tokens = self._tokens(prompt)
            last = tokens[-1] if tokens else None
        key = (end, last, wanted)
        if key not in self._ids:
            tokens = self._tokens(prompt) if tokens is None else tokens
            self._ids[key] = self._look_up(prompt, tokens, wanted)
        return self._ids[key]

    def _is_cut(self, end: str) -> bool:
        """Whether a control token is in `end`: reading it as plain text gives other tokens."""
        if end not in self._cut:
            self._cut[end] = bool(end) and self._tokens(end) != self._tokens(end, special=False)
        return self._cut[end]

    def _look_up(self, prompt: str, tokens: list[int], wanted: tuple[str, ...]) -> tuple[int, ...]:
        ids = []
        for symbol in wanted:
            longer = self._tokens(prompt + symbol)
            if len(longer) != len(tokens) + 1 or longer[:-1] != tokens:
                raise _not_one_token({"symbol": symbol, "tokens_at_the_end": longer[-4:]})
            ids.append(longer[-1])
        if len(set(ids)) != len(ids):
            raise _not_one_token({"symbols": list(wanted), "ids": ids})
        return tuple(ids)


def _not_one_token(found: dict[str, Any]) -> Failure:
    return Failure("candidate_not_one_token", None, {"endpoint": "/tokenize"} | found)
