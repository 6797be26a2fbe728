"""A terminal that no text from a stranger can steer."""

import re
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text


class SafeConsole(Console):
    r"""A console on which text is only text, whoever wrote it.

    Each text stays on one line, or a line end in a file's name or a server's error would write
    lines of its own; print several lines as several arguments with `sep="\n"`. The cells of Rich's
    own tables and bars are checked piece by piece.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        """Print each text as one line at most; the options are Rich's."""
        super().print(*map(self._one_line, objects), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The pieces to draw, with whatever would act in them spelled out."""
        for segment in super().render(renderable, options):
            if segment.control or is_printable(segment.text):
                yield segment
            else:
                yield Segment(printable_lines(segment.text), segment.style)

    def _one_line(self, value: Any) -> Any:
        if isinstance(value, str):
            return printable_line(value)
        if isinstance(value, Text) and printable_line(value.plain) != value.plain:
            return self._line(value)
        return value

    def _line(self, text: Text) -> Text:
        """The same text and styles on one line; line ends after it are kept."""
        core = text[: len(text.plain.rstrip("\n"))]
        line = Text()
        for segment in core.render(self):
            line.append(printable(segment.text), segment.style)
        if len(line.plain) > MAX_LINE:
            line = line[:MAX_LINE].append(f"… ({len(core.plain)} characters)")
        return line.append(text.plain[len(core.plain) :])


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
    return _ACTS.sub(lambda acting: ascii(acting[0])[1:-1], text)


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

    def escaped(acting: re.Match[str]) -> str:
        units = acting[0].encode("utf-16-be", "surrogatepass").hex(" ", 2).split()
        return "".join(f"\\u{unit}" for unit in units)

    # JSON escapes the controls below 32 itself, and its own line ends are no part of a text.
    return "\n".join(_ACTS.sub(escaped, line) for line in document.split("\n"))


def is_printable(text: str) -> bool:
    """Whether nothing in `text` would act."""
    return _ACTS.search(text) is None
