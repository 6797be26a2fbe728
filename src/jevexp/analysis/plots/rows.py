"""One line a run: a value with its interval, and the name beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jevexp.analysis.plots.plot import WIDTH, Margins
from jevexp.analysis.plots.style import BAND, INK, MUTED, PAPER, RULE, SMALL, TEXT
from jevexp.analysis.statistics.interval import Interval
from jevexp.analysis.text import shortened, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# With more runs than this a name stands beside its line and not above it.
_ROOMY = 10
_ROW = 44
_COMPACT_ROW = 17
_NAME = 120
_LETTER = 6.6
_MOST_TICKS = 5


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
