"""Numbers on the page, each with the place in the JSON that it comes from.

The template never formats a number by itself: it picks a value of the comparison's JSON, and what
is written carries the exact value and its JSON pointer (RFC 6901).
"""

from collections.abc import Callable, Iterator
from typing import Any

from markupsafe import Markup

from jevexp.analysis.plots.drawing import three_digits
from jevexp.core.json import dumps

_DATA = Markup('<data value="{}" data-at="{}"{}>{}</data>')
UNKNOWN = Markup('<span class="unknown" title="unknown">–</span>')


class JsonPointer:
    """A value in a JSON document, and where it stands."""

    __slots__ = ("pointer", "raw")

    def __init__(self, raw: Any, pointer: str = "") -> None:
        self.raw = raw
        self.pointer = pointer

    def __getitem__(self, key: str | int) -> "JsonPointer":
        """The part under a key or at an index.

        Raises:
            KeyError: there is none.
            IndexError: the list is shorter.
        """
        name = str(key).replace("~", "~0").replace("/", "~1")
        return JsonPointer(self.raw[key], f"{self.pointer}/{name}")

    def __iter__(self) -> Iterator["JsonPointer"]:
        keys = self.raw if isinstance(self.raw, dict) else range(len(self.raw))
        return (self[key] for key in keys)

    def __len__(self) -> int:
        return len(self.raw)

    def __bool__(self) -> bool:
        return bool(self.raw)

    def __str__(self) -> str:
        return str(self.raw)

    def items(self) -> Iterator[tuple[str, "JsonPointer"]]:
        """The keys of an object with their parts."""
        return ((key, self[key]) for key in self.raw)


def _data(
    place: JsonPointer, form: str, shown: Callable[[Any], Any] = lambda raw: raw, scale: str = ""
) -> Markup:
    """The value as `form` writes what is `shown` of it, with its groups and signs for print."""
    if place.raw is None:
        return UNKNOWN
    text = form.format(shown(place.raw)).replace(",", "\u202f").replace("-", "\u2212")
    scaled = Markup(' data-scale="{}"').format(scale) if scale else ""
    return _DATA.format(dumps(place.raw), place.pointer, scaled, text)


def _probability(place: JsonPointer) -> Markup:
    """A p value with its relation; below a thousandth only that."""
    if place.raw is not None and place.raw < 0.001:
        return _data(place, "<\u202f0.001")
    return Markup("=\u202f") + _data(place, "{:.3f}")


FILTERS: dict[str, Callable[..., Markup]] = {
    "decimal": lambda place, digits=3: _data(place, f"{{:.{digits}f}}"),
    "signed": lambda place: _data(place, "{:+.3f}"),
    "whole": lambda place: _data(place, "{:,}"),
    "probability": _probability,
    "seconds": lambda place: _data(place, "{}\u202fs", three_digits),
    "ratio": lambda place: _data(place, "{}\u202f×", three_digits),
    "megabytes": lambda place: _data(
        place, "{:,.0f}\u202fMB", lambda size: size / 1e6, scale="1e-6"
    ),
    "dollars": lambda place: _data(place, "${:.4g}"),
    # A setting, as short as it can be written.
    "plain": lambda place: _data(place, "{:g}"),
}
