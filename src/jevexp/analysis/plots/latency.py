"""How long answers take: the distribution of seconds of every run."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jevexp.analysis.comparison import Comparison, LatencySummary, RunStatistics
from jevexp.analysis.plots.plot import Cell, Panel, Plot, color_of
from jevexp.analysis.plots.rows import Line, draw_lines, height, margins
from jevexp.analysis.plots.scales import logarithmic
from jevexp.analysis.statistics.interval import Interval
from jevexp.analysis.text import three_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ("run", "label", "percentile", "seconds")
# Each stands for a twentieth of the answers.
_TWENTIETHS = range(2, 100, 5)


def latency(comparison: Comparison) -> Plot | None:
    """A line a run: the median, and around it the middle half and nine tenths of the answers."""
    timed = [
        (index, run, run.latency)
        for index, run in enumerate(comparison.runs)
        if run.latency and run.latency.quantiles[0] > 0
    ]
    if not timed:
        return None
    rows: list[Sequence[Cell]] = [
        (run.run, run.label, percentile, seconds)
        for _, run, found in timed
        for percentile, seconds in enumerate(found.quantiles)
    ]
    lines = [_line(run, found, color_of(comparison.runs, index)) for index, run, found in timed]
    panel = Panel(
        "seconds",
        "Seconds a task",
        f"Latency of {len(lines)} runs: median, middle half, and 5th to 95th percentile",
        height(len(lines)),
        _drawing(lines),
        margins=margins(len(lines)),
    )
    return Plot("latency", "How long answers take", COLUMNS, rows, [panel])


def _line(run: RunStatistics, found: LatencySummary, color: str) -> Line:
    median = found.median.value
    middle = Interval(found.quantiles[5], found.quantiles[95])
    dots = [found.quantiles[percentile] for percentile in _TWENTIETHS]
    return Line(run.label, median, middle, color, f"{three_digits(median)} s", dots)


def _drawing(lines: Sequence[Line]) -> "Callable[[Axes], None]":
    def draw(axes: "Axes") -> None:
        logarithmic(axes, [dot for line in lines for dot in line.dots])
        draw_lines(axes, lines, label="seconds (logarithmic); a pale dot is a twentieth")

    return draw
