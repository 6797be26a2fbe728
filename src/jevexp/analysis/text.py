"""Text that somebody else wrote, made safe to draw and to put on a page."""

from jevexp.untrusted.text import printable


def visible(text: str) -> str:
    r"""`text` with everything that would act, or that XML cannot hold, as an escape: `\u202e`."""
    return printable(text).replace("\ufffe", r"\ufffe").replace("\uffff", r"\uffff")


def visible_lines(text: str) -> str:
    """The same for text whose line ends are its own."""
    return "\n".join(map(visible, text.split("\n")))


def shortened(text: str, most: int) -> str:
    """`text`, or its beginning and an ellipsis where it has more than `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def three_digits(value: float) -> str:
    """A positive number for comparison with others: three digits, no exponent if it can be."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:#.3g}" if value >= 1e-4 else f"{value:.2e}"
