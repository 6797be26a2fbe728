"""A plot: panels that can stand side by side or below each other, and the data that they show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from jevexp.analysis.comparison import RunStatistics

Cell = str | int | float | None

# A phone's width without margins: a panel of this width fits everywhere.
WIDTH = 328
WIDE = 2 * WIDTH + 28
# More panels of one kind than this are no small multiples any more.
MOST_PANELS = 12


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


def color_of(runs: "Sequence[RunStatistics]", index: int) -> str:
    """The baseline is grey, whatever is held against it blue; one run alone is blue."""
    from jevexp.analysis.plots.style import BASELINE, CANDIDATE

    return BASELINE if index == 0 and len(runs) > 1 else CANDIDATE
