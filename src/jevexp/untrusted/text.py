"""Text from strangers, made harmless for a terminal and a log: what would act is spelled out."""

import re

# Controls (C0, DEL, C1), what reorders a line (bidirectional marks, embeddings, overrides,
# isolates), what ends one (line and paragraph separators), what cannot be seen (annotations,
# tags), and halves of surrogate pairs, which no output can encode.
_ACTS = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
# As much of a message as anybody reads; a file can hold an id of a million characters.
MAX_LINE = 4000


def printable(text: str) -> str:
    r"""`text` with everything that would act on a terminal as an escape: ESC becomes `\x1b`.

    Tabs stay; whatever has a shape, in every script, is left as it is.
    """
    return _ACTS.sub(_escaped, text)


def printable_lines(text: str) -> str:
    """`printable` for text whose line ends are its own."""
    return "\n".join(map(printable, text.split("\n")))


def visible(text: str) -> str:
    r"""`printable`, and as an escape also what XML cannot hold: for drawings and pages."""
    return printable(text).replace("\ufffe", r"\ufffe").replace("\uffff", r"\uffff")


def shortened(text: str, most: int) -> str:
    """`text`, or its beginning and an ellipsis where it has more than `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def printable_line(text: str) -> str:
    """`printable`, and cut where it is longer than anybody reads; line ends after it are kept."""
    core = text.rstrip("\n")
    shown = printable(core)
    if len(shown) > MAX_LINE:
        shown = f"{shown[:MAX_LINE]}… ({len(core)} characters)"
    return shown + text[len(core) :]


def printable_json(document: str) -> str:
    r"""A JSON document that means the same, with everything that acts as `\u` escapes."""
    # JSON escapes the controls below 32 itself, and its own line ends are no part of a text.
    return "\n".join(_ACTS.sub(_escaped_json, line) for line in document.split("\n"))


def is_printable(text: str) -> bool:
    """Whether nothing in `text` would act."""
    return _ACTS.search(text) is None


def _escaped(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]


def _escaped_json(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
