"""What a page says, read from its HTML."""

from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any


@dataclass
class Number:
    """One number: the exact value, where it comes from, and what is written."""

    value: str
    at: str
    scale: float
    text: str = ""


class PageReader(HTMLParser):
    """Collects the numbers of a page, and its other text by the elements around it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.numbers: list[Number] = []
        self.texts: list[tuple[str, str]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag in ("meta", "br", "link", "img"):
            return
        self._open.append(f"#{found['id']}" if tag == "section" else tag)
        if tag == "data":
            scale = float(found.get("data-scale") or 1)
            self.numbers.append(Number(found["value"] or "", found["data-at"] or "", scale))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if "data" in self._open:
            self.numbers[-1].text += data
        elif data.strip():
            self.texts.append((" ".join(self._open), " ".join(data.split())))

    def outside(self, *elements: str) -> Iterator[str]:
        """The text that is in none of these elements and is no number of the comparison."""
        for place, text in self.texts:
            if not set(place.split()) & set(elements):
                yield text


def look_up(document: Any, pointer: str) -> Any:
    """What stands at a JSON pointer; RFC 6901."""
    found = document
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        found = found[int(key)] if isinstance(found, list) else found[key]
    return found


def written(text: str) -> tuple[float, float] | None:
    """The number that a text says, and half of its last digit; None for a bound."""
    plain = text.replace("\u2212", "-").replace("\u202f", "").strip("s×MB$+")
    if plain.startswith("<"):
        return None
    mantissa, _, exponent = plain.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(plain), 0.5 * 10.0 ** (int(exponent or 0) - decimals)
