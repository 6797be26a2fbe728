"""Distributions: how sure each run is and how often right, and how long its answers take."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jevexp.analysis.comparison import Bin, Comparison, LatencySummary, RunStatistics
from jevexp.analysis.metrics import CALIBRATION
from jevexp.analysis.plots.drawing import (
    MOST_PANELS,
    MUTED,
    PAPER,
    RULE,
    SMALL,
    Line,
    Margins,
    Panel,
    Plot,
    color_of,
    draw_lines,
    height,
    logarithmic,
    margins,
    three_digits,
)
from jevexp.analysis.statistics.intervals import Interval
from jevexp.analysis.tables import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = ("run", "label", "lo", "hi", "n", "mean_confidence", "accuracy", "low", "high")
_SECONDS = ("run", "label", "percentile", "seconds")
# Where the counts stand, below the diagram itself.
_FLOOR = -0.42
_TALLEST = 0.24
# Each stands for a twentieth of the answers.
_TWENTIETHS = range(2, 100, 5)


def reliability(comparison: Comparison) -> Plot | None:
    """A panel a run that has distributions; None where no run has."""
    runs = comparison.runs
    drawn = [(index, run) for index, run in enumerate(runs) if run.bins]
    if not drawn:
        return None
    rows = [_bin_row(run, bin_) for _, run in drawn for bin_ in run.bins]
    panels = [_reliability_panel(run, color_of(runs, index)) for index, run in drawn[:MOST_PANELS]]
    left_out = len(drawn) - len(panels)
    note = f"The first {len(panels)} runs; {left_out} more are in the data." if left_out else None
    return Plot("reliability", "Reliability diagrams", _BINS, rows, panels, note)


def _bin_row(run: RunStatistics, bin_: Bin) -> Sequence[Cell]:
    low, high = bin_.interval or (None, None)
    return (
        run.run, run.label, bin_.lo, bin_.hi, bin_.n, bin_.mean_confidence, bin_.accuracy, low, high
    )  # fmt: skip


def _reliability_panel(run: RunStatistics, color: str) -> Panel:
    estimate = run.estimates[CALIBRATION.name]
    error = f"{CALIBRATION.heading} {f'{estimate.value:.3f}' if estimate else 'unknown'}"
    return Panel(
        run.path,
        run.label,
        f"Reliability diagram of {run.label}: accuracy against confidence in "
        f"{sum(bin_.n > 0 for bin_ in run.bins)} bins, {error}",
        354,
        _draw_bins(run.bins, color),
        margins=Margins(left=36, right=12, top=24, bottom=42),
    )


def _draw_bins(bins: Sequence[Bin], color: str) -> "Callable[[Axes], None]":
    def draw(axes: "Axes") -> None:
        axes.set_xlim(0, 1)
        axes.set_ylim(_FLOOR - 0.03, 1.02)
        ticks = [0, 0.25, 0.5, 0.75, 1]
        axes.set_xticks(ticks, ["0", "0.25", "0.5", "0.75", "1"])
        axes.set_yticks(ticks, ["0", "0.25", "0.5", "0.75", "1"])
        axes.tick_params(length=0, pad=6)
        axes.grid(color=RULE, linewidth=1)
        axes.set_axisbelow(True)
        axes.set_xlabel("confidence in the chosen option")
        axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, dashes=(4, 3))
        axes.text(0, 1.06, "share right", color=MUTED, fontsize=SMALL)
        most = max(bin_.n for bin_ in bins)
        for bin_ in bins:
            _draw_bin(axes, bin_, most, color)
        axes.text(0, _FLOOR + _TALLEST + 0.05, "tasks in the bin", color=MUTED, fontsize=SMALL)

    return draw


def _draw_bin(axes: "Axes", bin_: Bin, most: int, color: str) -> None:
    if bin_.n == 0 or bin_.mean_confidence is None or bin_.accuracy is None:
        return
    at = bin_.mean_confidence
    if bin_.interval:
        axes.plot([at, at], bin_.interval, color=color, linewidth=1.5, solid_capstyle="butt")
    axes.plot(
        [at], [bin_.accuracy], "o", markersize=8, color=color, markeredgecolor=PAPER,
        markeredgewidth=1.5, clip_on=False, zorder=3,
    )  # fmt: skip
    middle, top = (bin_.lo + bin_.hi) / 2, _TALLEST * bin_.n / most
    axes.bar(middle, top, (bin_.hi - bin_.lo) * 0.8, bottom=_FLOOR, color=color, alpha=0.35)
    axes.text(
        middle, _FLOOR + top + 0.015, f"{bin_.n}", ha="center", va="bottom", fontsize=SMALL - 1,
        color=MUTED,
    )  # fmt: skip


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
        for _, run, summary in timed
        for percentile, seconds in enumerate(summary.quantiles)
    ]
    lines = [
        _seconds_line(run, summary, color_of(comparison.runs, index))
        for index, run, summary in timed
    ]
    panel = Panel(
        "seconds",
        "Seconds a task",
        f"Latency of {len(lines)} runs: median, middle half, and 5th to 95th percentile",
        height(len(lines)),
        _draw_seconds(lines),
        margins=margins(len(lines)),
    )
    return Plot("latency", "How long answers take", _SECONDS, rows, [panel])


def _seconds_line(run: RunStatistics, summary: LatencySummary, color: str) -> Line:
    median = summary.median.value
    middle = Interval(summary.quantiles[5], summary.quantiles[95])
    dots = [summary.quantiles[percentile] for percentile in _TWENTIETHS]
    return Line(run.label, median, middle, color, f"{three_digits(median)} s", dots)


def _draw_seconds(lines: Sequence[Line]) -> "Callable[[Axes], None]":
    def draw(axes: "Axes") -> None:
        logarithmic(axes, [dot for line in lines for dot in line.dots])
        draw_lines(axes, lines, label="seconds (logarithmic); a pale dot is a twentieth")

    return draw
