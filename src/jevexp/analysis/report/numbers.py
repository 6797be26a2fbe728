"""Numbers on the page, each with the place in the JSON that it comes from.

The template never formats a number by itself: it picks a value of the comparison's JSON, and what
is written carries the exact value and its JSON pointer (RFC 6901).
"""

from collections.abc import Iterator
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
        return (self[key] for key in self._keys())

    def __len__(self) -> int:
        return len(self.raw)

    def __bool__(self) -> bool:
        return bool(self.raw)

    def __str__(self) -> str:
        return str(self.raw)

    def items(self) -> Iterator[tuple[str, "JsonPointer"]]:
        """The keys of an object with their parts."""
        return ((str(key), self[key]) for key in self._keys())

    def _keys(self) -> Iterator[Any]:
        return iter(self.raw if isinstance(self.raw, dict) else range(len(self.raw)))


def decimal(place: JsonPointer, digits: int = 3) -> Markup:
    """With a fixed number of decimals."""
    return _data(place, "" if place.raw is None else f"{place.raw:.{digits}f}")


def signed(place: JsonPointer, digits: int = 3) -> Markup:
    """A difference, with its sign."""
    return _data(place, "" if place.raw is None else f"{place.raw:+.{digits}f}")


def whole(place: JsonPointer) -> Markup:
    """A count, in groups of three digits."""
    return _data(place, "" if place.raw is None else f"{place.raw:,}".replace(",", "\u202f"))


def probability(place: JsonPointer) -> Markup:
    """A p value with its relation; below a thousandth only that."""
    if place.raw is not None and place.raw < 0.001:
        return _data(place, "<\u202f0.001")
    return Markup("=\u202f") + decimal(place)


def seconds(place: JsonPointer) -> Markup:
    """Seconds, three digits of them."""
    return _data(place, "" if place.raw is None else f"{three_digits(place.raw)}\u202fs")


def ratio(place: JsonPointer) -> Markup:
    """How many times as much."""
    return _data(place, "" if place.raw is None else f"{three_digits(place.raw)}\u202f×")


def megabytes(place: JsonPointer) -> Markup:
    """Bytes, in megabytes."""
    text = "" if place.raw is None else f"{place.raw / 1e6:,.0f}".replace(",", "\u202f")
    return _data(place, f"{text}\u202fMB" if text else "", scale="1e-6")


def dollars(place: JsonPointer) -> Markup:
    """US dollars."""
    return _data(place, "" if place.raw is None else f"${place.raw:.4g}")


def plain(place: JsonPointer) -> Markup:
    """A setting, as short as it can be written."""
    return _data(place, "" if place.raw is None else f"{place.raw:g}")


def _data(place: JsonPointer, text: str, *, scale: str | None = None) -> Markup:
    if not text:
        return UNKNOWN
    scaled = Markup(' data-scale="{}"').format(scale) if scale else ""
    shown = text.replace("-", "\u2212")
    return _DATA.format(dumps(place.raw), place.pointer, scaled, shown)


FILTERS = {
    filter_.__name__: filter_
    for filter_ in (
        decimal, signed, whole, probability, seconds, ratio, megabytes, dollars, plain,
    )
}  # fmt: skip
