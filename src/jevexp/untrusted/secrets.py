"""Keys that are in use, found again in what strangers say, however it is spelled."""

import html
import re
import unicodedata
from base64 import b64encode
from collections.abc import Iterable
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

# Shorter ones, such as "none" for a server that wants any, occur in honest answers.
_SHORTEST = 8
_MOST_PIECES = 4
# Escapes may be escaped again.
_MOST_LAYERS = 3
# Stands where a secret was.
MARK = "[key]"
_ESCAPE = re.compile(r"\\u\{?([0-9a-fA-F]{2,6})\}?|\\x([0-9a-fA-F]{2})|\\([0-7]{3})|\\(.)", re.S)
# Joins what was put between the letters.
_LETTERLESS = re.compile(r"[\W_]+")
_FILLING = re.compile(r"[\s\x00-\x1f\x7f\u00ad\u200b-\u200f\u2060\ufeff]+")


class Secrets:
    """The secrets of one connection; None and empty texts among the values are none.

    A secret is looked for in up to four pieces, so that one with a letter changed or left out, cut
    short, or spread over several fields is seen as well.
    """

    def __init__(self, values: Iterable[str | None]) -> None:
        present = [value for value in values if value]
        # Whether there is any secret that a stranger could repeat.
        self.in_use = bool(present)
        self._long = [value for value in present if len(value) >= _SHORTEST]
        # Of one long enough to be cut, only letters and digits count.
        letters = {value: _LETTERLESS.sub("", _plain(value)) for value in self._long}
        self._pieces = {piece for word in letters.values() for piece in _cut(word)}
        self._whole = {
            _plain(value) for value, word in letters.items() if len(word) < 2 * _SHORTEST
        }
        # These stand for several letters each, so that a piece is cut at other places.
        self._packed = {form for value in self._long for form in _packed(value)}

    def occur_in(self, text: str) -> bool:
        """Whether a text repeats a secret or most of it: escaped, encoded, in other case."""
        # Decoding makes a text shorter, unless it is made of compatibility characters.
        if not self._long or (len(text) < _SHORTEST and text.isascii()):
            return False
        unfilled = _FILLING.sub("", text)
        if any(form in unfilled for form in self._packed):
            return True
        for _ in range(_MOST_LAYERS + 1):
            plain = _plain(text)
            if any(value in plain for value in self._whole) or self._pieced_in(plain):
                return True
            decoded = _ESCAPE.sub(_character, unquote(html.unescape(text)))
            if decoded == text:
                return False
            text = decoded
        return False

    def spread_over(self, text: str) -> bool:
        """Whether a text with many parts, such as a whole JSON document, repeats a secret.

        A secret of digits alone is not looked for: many numbers hold it by chance.
        """
        return self._pieced_in(_plain(text), digits=False)

    def _pieced_in(self, plain: str, *, digits: bool = True) -> bool:
        letters = _LETTERLESS.sub("", plain) if self._pieces else ""
        return any(piece in letters for piece in self._pieces if digits or not piece.isdigit())

    def without(self, value: Any) -> Any:
        """Plain JSON in which every string that repeats a secret, keys too, is replaced."""
        if isinstance(value, str) and self.occur_in(value):
            for secret in self._long:
                value = value.replace(secret, MARK)
            # The rest of the text is shown where nothing else of the secret is in it.
            return MARK if self.occur_in(value) else value
        if type(value) is int:
            return MARK if self.occur_in(str(value)) else value
        if isinstance(value, list):
            return [self.without(part) for part in value]
        if isinstance(value, dict):
            kept: dict[str, Any] = {}
            for key, part in value.items():
                name = self.without(key)
                while name in kept:
                    name += "'"
                kept[name] = self.without(part)
            return kept
        return value


def _cut(secret: str) -> list[str]:
    """The secret in two or more pieces of at least eight letters; none where it is too short."""
    count = min(_MOST_PIECES, len(secret) // _SHORTEST)
    if count < 2:
        return []
    ends = [len(secret) * index // count for index in range(count + 1)]
    return [secret[start:end] for start, end in pairwise(ends)]


def _packed(secret: str) -> Iterable[str]:
    """The middle of the secret in hexadecimal and, at each of three offsets, in Base64."""
    data = secret.encode()
    yield data.hex()
    yield data.hex().upper()
    for offset in range(3):
        # Without the letters that also depend on what stands before and after.
        spelled = b64encode(b"\0" * offset + data).decode().rstrip("=")[2 * offset and 4 : -2]
        yield from {spelled, spelled.replace("+", "-").replace("/", "_")}


def _plain(text: str) -> str:
    return _FILLING.sub("", unicodedata.normalize("NFKC", text)).casefold()


def _character(escape: re.Match[str]) -> str:
    code, byte, octal, letter = escape.groups()
    if letter is not None:
        return letter
    number = int(octal, 8) if octal else int(code or byte, 16)
    return chr(number) if number < 0x110000 else ""
