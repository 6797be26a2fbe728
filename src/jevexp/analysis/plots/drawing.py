"""What plots are made of: colours and settings, panels, lines with intervals, logarithmic axes.

A colour stands for a role. In files it is used as it is; on the page it becomes the style sheet's
variable of that role, which follows the reader's colour scheme.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from jevexp.analysis.comparison import RunStatistics
from jevexp.analysis.statistics.intervals import Interval
from jevexp.analysis.tables import Cell
from jevexp.untrusted.console import shortened, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#1a1d21"
MUTED = "#5b636d"
RULE = "#dde1e6"
BAND = "#edf0f4"
PAPER = "#ffffff"
# Blue, green and vermilion of Okabe and Ito (2008), "Color Universal Design", darkened to a
# contrast of 4.5 on white: told apart by people who see no difference between red and green.
BASELINE = "#5b6571"
CANDIDATE = "#0067a8"
BETTER = "#00735a"
WORSE = "#b84300"
EQUIVALENT = "#6a4fb3"
INCONCLUSIVE = "#6b7280"

ROLES = {
    INK: "ink",
    MUTED: "muted",
    RULE: "rule",
    BAND: "band",
    PAPER: "paper",
    BASELINE: "baseline",
    CANDIDATE: "candidate",
    BETTER: "better",
    WORSE: "worse",
    EQUIVALENT: "equivalent",
    INCONCLUSIVE: "inconclusive",
}
VERDICTS = {
    "better": BETTER,
    "worse": WORSE,
    "equivalent": EQUIVALENT,
    "inconclusive": INCONCLUSIVE,
}

# Heat maps are light for little and dark for much, the same in both colour schemes. One hue from
# light to dark, so that people who see no difference between hues read it alike, also in print
# without colour.
LEVELS = 10
ABSENT = "#8a929c"
_FILLS = (
    "#eef3f9", "#dbe7f3", "#c3d8ec", "#a5c6e3", "#82b1d8",
    "#5d9acb", "#3478b2", "#24649f", "#164f87", "#0a3769",
)  # fmt: skip
_DARK_FROM = 6

# Matplotlib's points are pixels where there are 72 dots an inch.
DPI = 72
TEXT = 12
SMALL = 11

_SETTINGS: dict[Any, Any] = {
    "axes.edgecolor": RULE,
    "axes.linewidth": 1,
    "axes.labelcolor": MUTED,
    "axes.labelsize": SMALL,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": ["DejaVu Sans"],
    "font.size": TEXT,
    "figure.dpi": DPI,
    "svg.fonttype": "none",
    # Ids in the file are hashes: the same plot, the same bytes.
    "svg.hashsalt": "jevexp",
    "text.color": INK,
    # A dollar in a name is no formula.
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "xtick.color": RULE,
    "xtick.labelcolor": MUTED,
    "xtick.labelsize": SMALL,
    "ytick.color": RULE,
    "ytick.labelcolor": MUTED,
    "ytick.labelsize": SMALL,
}

# A phone's width without margins: a panel of this width fits everywhere.
WIDTH = 328
WIDE = 2 * WIDTH + 28
# More panels of one kind than this are no small multiples any more.
MOST_PANELS = 12
# With more runs than this a name stands beside its line and not above it.
_ROOMY = 10
_ROW = 44
_COMPACT_ROW = 17
_NAME = 120
_LETTER = 6.6
_MOST_TICKS = 5
# Nearly equal runs must not look far apart: half a decade at least.
_LEAST_RATIO = 3.0


@contextmanager
def styled() -> Iterator[None]:
    """Draw with these settings, whatever the person's own configuration of Matplotlib says."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def level(share: float) -> int:
    """Which of the ten levels a share from 0 to 1 is at."""
    return min(int(share * LEVELS), LEVELS - 1)


def fill(at: int) -> str:
    """The colour of a level."""
    return _FILLS[at]


def ink_on(at: int) -> str:
    """What can be read on the colour of a level."""
    return "#fefefe" if at >= _DARK_FROM else "#101214"


def three_digits(value: float) -> str:
    """A positive number for comparison with others: three digits, no exponent if it can be."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:#.3g}" if value >= 1e-4 else f"{value:.2e}"


class Margins(NamedTuple):
    """Pixels around the axes."""

    left: float = 8
    right: float = 8
    top: float = 8
    bottom: float = 40


_NARROW = Margins()


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
    width: int = WIDTH
    margins: Margins = _NARROW


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


def color_of(runs: Sequence[RunStatistics], index: int) -> str:
    """The baseline is grey, whatever is held against it blue; one run alone is blue."""
    return BASELINE if index == 0 and len(runs) > 1 else CANDIDATE


@dataclass(frozen=True, slots=True)
class Line:
    """A value of one run with its interval; `text` says it, `dots` are single values."""

    name: str
    value: float
    wide: Interval | None
    color: str
    text: str
    dots: Sequence[float] = ()


def height(lines: int) -> int:
    """Pixels that so many lines need, with the margins."""
    row = _ROW if lines <= _ROOMY else _COMPACT_ROW
    return int(lines * row + sum(margins(lines)[2:]))


def margins(lines: int) -> Margins:
    """Room for the names, where they stand beside their lines."""
    return Margins(left=18 if lines <= _ROOMY else _NAME + 16, right=18, top=4)


def draw_lines(
    axes: "Axes",
    lines: Sequence[Line],
    *,
    label: str,
    limits: tuple[float, float] | None = None,
    band: float | None = None,
    origin: float | None = None,
) -> None:
    """Draw them from top to bottom.

    Args:
        axes: what is drawn on.
        lines: at least one.
        label: what the horizontal axis shows.
        limits: from where to where it goes; as it is set already where there are none.
        band: half the width of the shaded area around zero.
        origin: where a line says that there is no difference.
    """
    from matplotlib.ticker import MaxNLocator

    roomy = len(lines) <= _ROOMY
    if limits:
        axes.set_xlim(*limits)
        axes.xaxis.set_major_locator(MaxNLocator(_MOST_TICKS, steps=[1, 2, 2.5, 5, 10]))
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_yticks([])
    # Where the names take half of the width, centred text would be cut off.
    axes.set_xlabel(label, loc="center" if roomy else "right")
    axes.tick_params(axis="x", length=0, pad=6)
    axes.grid(axis="x", color=RULE, linewidth=1)
    axes.set_axisbelow(True)
    if band is not None:
        axes.axvspan(-band, band, color=BAND, linewidth=0, zorder=0)
    if origin is not None:
        axes.axvline(origin, color=MUTED, linewidth=1)
    for place, line in enumerate(lines):
        _draw_line(axes, line, place + (0.17 if roomy else 0))
        if roomy:
            _name_above(axes, line, place)
        else:
            _name_beside(axes, line, place)


def _draw_line(axes: "Axes", line: Line, y: float) -> None:
    if line.wide:
        axes.plot(line.wide, [y, y], color=line.color, linewidth=2, solid_capstyle="butt")
    if line.dots:
        axes.plot(
            line.dots, [y] * len(line.dots), "o", markersize=7, color=line.color, alpha=0.25,
            markeredgewidth=0,
        )  # fmt: skip
    axes.plot(
        [line.value], [y], "o", markersize=8, color=line.color, markeredgecolor=PAPER,
        markeredgewidth=1.5, clip_on=False, zorder=3,
    )  # fmt: skip


def _name_above(axes: "Axes", line: Line, place: float) -> None:
    room = int((WIDTH - 40 - len(line.text) * _LETTER) / _LETTER)
    name = shortened(visible(line.name), room)
    # The lines of the grid do not run through the letters.
    box = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.5}
    common: dict[str, Any] = {"va": "center", "fontsize": TEXT, "clip_on": False, "bbox": box}
    above = place - 0.17
    axes.text(0, above, name, transform=axes.get_yaxis_transform(), color=INK, **common)
    axes.text(
        1, above, line.text, transform=axes.get_yaxis_transform(), color=line.color, ha="right",
        fontweight="bold", **common,
    )  # fmt: skip


def _name_beside(axes: "Axes", line: Line, place: float) -> None:
    axes.annotate(
        shortened(visible(line.name), int(_NAME / _LETTER)), (0, place), (-8, 0),
        xycoords=axes.get_yaxis_transform(), textcoords="offset points", ha="right", va="center",
        fontsize=SMALL, color=INK, annotation_clip=False,
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
        if len(inside) <= _MOST_TICKS:
            return inside
    return inside[:: len(inside) // _MOST_TICKS + 1]
