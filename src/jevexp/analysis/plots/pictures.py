"""Plots as pictures: SVG and PNG files, and small SVGs for the page that follow its colours."""

import io
import math
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from jevexp.analysis.plots.drawing import DPI, INK, ROLES, TEXT, Panel, Plot, styled
from jevexp.untrusted.console import shortened, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TITLE = 28
_GAP = 24
_COLUMNS = 3
_LETTER = 7.2
# Twice the pixels of a screen: sharp in print.
_PNG_DPI = 144
_HREF = "{http://www.w3.org/1999/xlink}href"
_LONG_NUMBER = re.compile(r"-?\d+\.\d{2,}")
_NO_ROTATION = re.compile(r"rotate\(-?0(\.0*)? [^)]*\)")
_WITH_NUMBERS = ("d", "x", "y", "transform", "points", "width", "height")
# What a style sheet says better, once for all text.
_LEFT_OUT = frozenset({"font-family", "stroke-linejoin", "stroke-miterlimit"})


def pictures(plot: Plot) -> dict[str, bytes]:
    """The plot by suffix of its file, `.svg` and `.png`; the same plot gives the same bytes."""
    with drawn():
        figure = plot_figure(plot)
        vectors, pixels = io.BytesIO(), io.BytesIO()
        figure.savefig(vectors, format="svg", metadata={"Date": None})
        figure.savefig(pixels, format="png", dpi=_PNG_DPI, metadata={"Software": None})
    return {".svg": vectors.getvalue(), ".png": pixels.getvalue()}


@contextmanager
def drawn() -> Iterator[None]:
    """What draws is done within this: our settings, and no warning of a letter without a shape."""
    with styled(), warnings.catch_warnings():
        # A letter that the font lacks is a box in a file; a browser has it, and so has the data.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        yield


def panel_figure(panel: Panel) -> "Figure":
    """One panel without its title."""
    figure = _figure(panel.width, panel.height)
    _add(figure, panel, left=0, top=0)
    return figure


def plot_figure(plot: Plot) -> "Figure":
    """All panels with their titles, at most three side by side."""
    count = len(plot.panels)
    columns = 2 if count == 4 else min(count, _COLUMNS)
    width = max(panel.width for panel in plot.panels)
    height = max(panel.height for panel in plot.panels) + _TITLE
    lines = math.ceil(count / columns)
    figure = _figure(columns * width + (columns + 1) * _GAP, lines * height + (lines + 1) * _GAP)
    for place, panel in enumerate(plot.panels):
        line, column = divmod(place, columns)
        left = _GAP + column * (width + _GAP)
        top = _GAP + line * (height + _GAP)
        size = figure.get_size_inches() * DPI
        figure.text(
            (left + 8) / size[0], 1 - top / size[1],
            shortened(visible(panel.title), int(panel.width / _LETTER)),
            fontsize=TEXT, fontweight="bold", color=INK, va="top",
        )  # fmt: skip
        _add(figure, panel, left=left, top=top + _TITLE)
    return figure


def _figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width / DPI, height / DPI), dpi=DPI)


def _add(figure: "Figure", panel: Panel, *, left: float, top: float) -> None:
    width, height = figure.get_size_inches() * DPI
    around = panel.margins
    axes = figure.add_axes(
        (
            (left + around.left) / width,
            1 - (top + panel.height - around.bottom) / height,
            (panel.width - around.left - around.right) / width,
            (panel.height - around.top - around.bottom) / height,
        )
    )
    axes.patch.set_visible(False)
    panel.draw(axes)


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
    return _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), text)
