"""A terminal that no text from a stranger can steer."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from jevexp.untrusted.text import MAX_LINE, is_printable, printable, printable_line, printable_lines


class SafeConsole(Console):
    r"""A console on which text is only text, whoever wrote it.

    What is printed stays on one line: a line end inside of a text would let a file's name or a
    server's error write lines of its own. Several lines are several arguments and `sep="\n"`.
    Rich's own tables and bars are drawn as ever; their cells are checked piece by piece.
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
