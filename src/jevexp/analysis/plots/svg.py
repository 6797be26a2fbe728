"""Figures as SVG for the page: small, following its colours, without styles of its own."""

import io
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from jevexp.analysis.plots.style import ROLES
from jevexp.analysis.text import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HREF = "{http://www.w3.org/1999/xlink}href"
_LONG_NUMBER = re.compile(r"-?\d+\.\d{2,}")
_NO_ROTATION = re.compile(r"rotate\(-?0(\.0*)? [^)]*\)")
_WITH_NUMBERS = ("d", "x", "y", "transform", "points", "width", "height")
# What a style sheet says better, once for all text.
_LEFT_OUT = frozenset({"font-family", "stroke-linejoin", "stroke-miterlimit"})


def inline_svg(figure: "Figure", *, alt: str, prefix: str) -> str:
    """An SVG element for an HTML page.

    Its style attributes become attributes of their own, since the page's content security policy
    allows no inline style; its colours become the page's variables.

    Args:
        figure: drawn with the settings of these plots.
        alt: what it shows, for those who cannot see it.
        prefix: of its ids; unique on the page.
    """
    file = io.BytesIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(file.getvalue())  # noqa: S314  Matplotlib wrote it just now
    for parent in list(root.iter()):
        for child in list(parent):
            if _name(child) in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        _rewrite(element, prefix)
    width, height = root.attrib["viewBox"].split()[2:]
    root.attrib.pop("version")
    root.attrib |= {"width": width, "height": height, "role": "img", "aria-label": visible(alt)}
    return ElementTree.tostring(root, encoding="unicode")


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _rewrite(element: ElementTree.Element, prefix: str) -> None:
    element.tag = _name(element)
    attributes = element.attrib
    if (target := attributes.pop(_HREF, None)) is not None:
        attributes["href"] = f"#{prefix}{target.removeprefix('#')}"
    for style in attributes.pop("style", "").split(";"):
        name, _, value = (part.strip() for part in style.partition(":"))
        if name and name not in _LEFT_OUT:
            attributes[name] = _themed(value.removesuffix("px"))
    # Only what is used again needs an id.
    if (given := attributes.pop("id", None)) and element.tag in ("path", "clipPath"):
        attributes["id"] = f"{prefix}{given}"
    if "clip-path" in attributes:
        attributes["clip-path"] = attributes["clip-path"].replace("url(#", f"url(#{prefix}")
    for name in _WITH_NUMBERS:
        if name in attributes:
            attributes[name] = _short(attributes[name])
    if not attributes.get("transform", "-"):
        del attributes["transform"]
    # The layout of the file is not part of the picture; that of a text is.
    if element.tag != "text" and element.text and element.text.isspace():
        element.text = None
    element.tail = None


def _themed(value: str) -> str:
    role = ROLES.get(value)
    return f"var(--{role})" if role else value


def _short(text: str) -> str:
    text = _NO_ROTATION.sub("", " ".join(text.split()))
    return _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), text)
