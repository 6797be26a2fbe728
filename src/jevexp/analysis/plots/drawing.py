"""What plots are made of: colours, settings and panels; and their pictures, in files and on pages.

A colour stands for a role. In files it is used as it is; on the page it becomes the style sheet's
variable of that role, which follows the reader's colour scheme.
"""

import io
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from markupsafe import Markup

from jevexp.analysis.comparison import RunStatistics
from jevexp.analysis.tables import Cell
from jevexp.untrusted.console import shortened, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1a1d21"
MUTED = "#5b636d"
RULE = "#dde1e6"
BAND = "#edf0f4"
PAPER = "#ffffff"
# Blue, green and vermilion of Okabe and Ito (2008), "Color Universal Design", darkened to a
# contrast of 4.5 on white: told apart by people who see no difference between red and green.
BASELINE = "#5b6571"
CANDIDATE = "#0067a8"
VERDICTS = {
    "better": "#00735a",
    "worse": "#b84300",
    "equivalent": "#6a4fb3",
    "inconclusive": "#6b7280",
}
ROLES = {
    INK: "ink",
    MUTED: "muted",
    RULE: "rule",
    BAND: "band",
    PAPER: "paper",
    BASELINE: "baseline",
    CANDIDATE: "candidate",
} | {color: verdict for verdict, color in VERDICTS.items()}

# Heat maps are light for little and dark for much, the same in both colour schemes. One hue from
# light to dark, so that people who see no difference between hues read it alike, also in print
# without colour.
ABSENT = "#8a929c"
FILLS = (
    "#eef3f9", "#dbe7f3", "#c3d8ec", "#a5c6e3", "#82b1d8",
    "#5d9acb", "#3478b2", "#24649f", "#164f87", "#0a3769",
)  # fmt: skip
_DARK_FROM = 6

# Matplotlib's points are pixels where there are 72 dots an inch; files have twice the pixels of a
# screen, sharp in print.
_DPI = 72
_PNG_DPI = 144
TEXT = 12
SMALL = 11
# Pixels that a letter of the small text takes.
LETTER = 6.6
# A phone's width without margins: a panel of this width fits everywhere.
WIDTH = 328
WIDE = 2 * WIDTH + 28

_SETTINGS: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": RULE,
    "axes.grid": True,
    "axes.labelcolor": MUTED,
    "axes.linewidth": 1,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.unicode_minus": True,
    "font.family": ["DejaVu Sans"],
    "font.size": SMALL,
    "figure.dpi": _DPI,
    "grid.color": RULE,
    "grid.linewidth": 1,
    "lines.solid_capstyle": "butt",
    "svg.fonttype": "none",
    # Ids in the file are hashes: the same plot, the same bytes.
    "svg.hashsalt": "jevexp",
    "text.color": INK,
    # A dollar in a name is no formula.
    "text.parse_math": False,
    "xtick.labelcolor": MUTED,
    "xtick.major.pad": 6,
    "xtick.major.size": 0,
    "ytick.labelcolor": MUTED,
    "ytick.major.pad": 6,
    "ytick.major.size": 0,
}

MOST_TICKS = 5
# Nearly equal runs must not look far apart: half a decade at least.
_LEAST_RATIO = 3.0
# Pixels of a file with several panels.
_TITLE = 28
_TITLE_LETTER = 7.2
_GAP = 24
_COLUMNS = 3

_HREF = "{http://www.w3.org/1999/xlink}href"
_LONG_NUMBER = re.compile(r"-?\d+\.\d{2,}")
_NO_ROTATION = re.compile(r"rotate\(-?0(\.0*)? [^)]*\)")
_WITH_NUMBERS = ("d", "x", "y", "transform", "points", "width", "height")
# What a style sheet says better, once for all text.
_LEFT_OUT = frozenset({"font-family", "stroke-linejoin", "stroke-miterlimit"})


@contextmanager
def styled() -> Iterator[None]:
    """Draw with these settings, whatever the person's own configuration of Matplotlib says."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        # A letter that the font lacks is a box in a file; a browser has it, and so has the data.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def level(share: float) -> int:
    """Which of the fills a share from 0 to 1 has."""
    return min(int(share * len(FILLS)), len(FILLS) - 1)


def ink_on(at: int) -> str:
    """What can be read on a fill."""
    return "#fefefe" if at >= _DARK_FROM else "#101214"


def color_of(runs: Sequence[RunStatistics], index: int) -> str:
    """The baseline is grey, whatever is held against it blue; one run alone is blue."""
    return BASELINE if index == 0 and len(runs) > 1 else CANDIDATE


def three_digits(value: float) -> str:
    """A positive number for comparison with others: three digits, no exponent if it can be."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:#.3g}" if value >= 1e-4 else f"{value:.2e}"


def signed(difference: float) -> str:
    """A difference with its sign and three decimals."""
    return f"{difference:+.3f}".replace("-", "\u2212")


class Margins(NamedTuple):
    """Pixels around the axes."""

    left: float = 8
    right: float = 8
    top: float = 8
    bottom: float = 40


@dataclass(frozen=True, slots=True)
class Panel:
    """One set of axes, `width` by `height` pixels with the margins.

    `key` is unique among the panels of its plot, `alt` says what is seen.
    """

    key: str
    title: str
    alt: str
    height: int
    draw: "Callable[[Axes], None]"
    margins: Margins
    width: int = WIDTH


@dataclass(frozen=True, slots=True)
class Plot:
    """Panels under one name; `rows` are the data, a value for each of `columns`.

    `note` says what was left out of the panels; the rows hold everything.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    panels: Sequence[Panel]
    note: str | None = None


def draw_point(axes: "Axes", x: float, y: float, color: str) -> None:
    """Draw a value, set off from the lines below it."""
    axes.plot(
        [x], [y], "o", markersize=8, color=color, markeredgecolor=PAPER, markeredgewidth=1.5,
        clip_on=False, zorder=3,
    )  # fmt: skip


def write_beside(axes: "Axes", y: float, text: str) -> None:
    """Write to the left of the axes; `y` is in their data's unit."""
    axes.annotate(
        text, (0, y), (-8, 0), xycoords=axes.get_yaxis_transform(), textcoords="offset points",
        ha="right", va="center", annotation_clip=False,
    )  # fmt: skip


def logarithmic(axes: "Axes", values: Iterable[float]) -> None:
    """Make the horizontal axis logarithmic, with room around the values, all above zero."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    ordered = sorted(values)
    low, high = ordered[0], ordered[-1]
    spread = max(high / low, _LEAST_RATIO) ** 0.5 * 1.25
    middle = (low * high) ** 0.5
    axes.set_xscale("log")
    axes.set_xlim(middle / spread, middle * spread)
    axes.xaxis.set_major_locator(FixedLocator(_ticks(middle / spread, middle * spread)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between two: 1, 2 and 5 of each decade, or the decades alone, or some."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) <= MOST_TICKS:
            return inside
    return inside[:: len(inside) // MOST_TICKS + 1]


def pictures(plot: Plot) -> dict[str, bytes]:
    """The plot by suffix of its file, `.svg` and `.png`; the same plot gives the same bytes.

    All panels have their titles, and at most three are side by side.
    """
    count = len(plot.panels)
    columns = 2 if count == 4 else min(count, _COLUMNS)
    width = max(panel.width for panel in plot.panels) + _GAP
    height = max(panel.height for panel in plot.panels) + _TITLE + _GAP
    size = (columns * width + _GAP, math.ceil(count / columns) * height + _GAP)
    vectors, pixels = io.BytesIO(), io.BytesIO()
    with styled():
        figure = _figure(*size)
        for place, panel in enumerate(plot.panels):
            line, column = divmod(place, columns)
            left, top = _GAP + column * width, _GAP + line * height
            title = shortened(visible(panel.title), int(panel.width / _TITLE_LETTER))
            figure.text(
                (left + 8) / size[0], 1 - top / size[1], title, fontsize=TEXT, fontweight="bold",
                va="top",
            )  # fmt: skip
            _add(figure, panel, left=left, top=top + _TITLE)
        figure.savefig(vectors, format="svg", metadata={"Date": None})
        figure.savefig(pixels, format="png", dpi=_PNG_DPI, metadata={"Software": None})
    return {".svg": vectors.getvalue(), ".png": pixels.getvalue()}


def _figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)


def _add(figure: "Figure", panel: Panel, *, left: float = 0, top: float = 0) -> None:
    width, height = figure.get_size_inches() * _DPI
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


def inline_svg(panel: Panel, prefix: str) -> Markup:
    """A panel without its title as an SVG element for an HTML page; its ids begin with `prefix`.

    Its style attributes become attributes of their own, since the page's content security policy
    allows no inline style; its colours become the page's variables.
    """
    file = io.BytesIO()
    with styled():
        figure = _figure(panel.width, panel.height)
        _add(figure, panel)
        metadata = {"Date": None, "Creator": None}
        figure.savefig(file, format="svg", transparent=True, metadata=metadata)
    root = ElementTree.fromstring(file.getvalue())  # noqa: S314  Matplotlib wrote it just now
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        _rewrite(element, prefix)
    width, height = root.attrib["viewBox"].split()[2:]
    root.attrib.pop("version")
    label = visible(panel.alt)
    root.attrib |= {"width": width, "height": height, "role": "img", "aria-label": label}
    # The serializer escapes every text.
    return Markup(ElementTree.tostring(root, encoding="unicode"))  # noqa: S704


def _rewrite(element: ElementTree.Element, prefix: str) -> None:
    attributes = element.attrib
    if (target := attributes.pop(_HREF, None)) is not None:
        attributes["href"] = f"#{prefix}{target.removeprefix('#')}"
    for style in attributes.pop("style", "").split(";"):
        name, _, value = (part.strip() for part in style.partition(":"))
        if name and name not in _LEFT_OUT:
            role = ROLES.get(value)
            attributes[name] = f"var(--{role})" if role else value.removesuffix("px")
    # Only what is used again needs an id.
    if (own := attributes.pop("id", None)) and element.tag in ("path", "clipPath"):
        attributes["id"] = f"{prefix}{own}"
    if "clip-path" in attributes:
        attributes["clip-path"] = attributes["clip-path"].replace("url(#", f"url(#{prefix}")
    for name in attributes.keys() & _WITH_NUMBERS:
        text = _NO_ROTATION.sub("", " ".join(attributes[name].split()))
        attributes[name] = _LONG_NUMBER.sub(
            lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), text
        )
    if not attributes.get("transform", "-"):
        del attributes["transform"]
    # The layout of the file is not part of the picture; that of a text is.
    if element.tag != "text" and element.text and element.text.isspace():
        element.text = None
    element.tail = None
