"""Reliability diagrams: whether a model is right as often as it is sure."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jevexp.analysis.comparison import Bin, Comparison, RunStatistics
from jevexp.analysis.plots.plot import MOST_PANELS, Cell, Margins, Panel, Plot, color_of
from jevexp.analysis.plots.style import MUTED, PAPER, RULE, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ("run", "label", "lo", "hi", "n", "mean_confidence", "accuracy", "low", "high")

# Where the counts stand, below the diagram itself.
_FLOOR = -0.42
_TALLEST = 0.24


def reliability(comparison: Comparison) -> Plot | None:
    """A panel a run that has distributions; None where no run has."""
    runs = comparison.runs
    drawn = [(index, run) for index, run in enumerate(runs) if run.bins]
    if not drawn:
        return None
    rows = [_row(run, one) for _, run in drawn for one in run.bins]
    panels = [_panel(run, color_of(runs, index)) for index, run in drawn[:MOST_PANELS]]
    left_out = len(drawn) - len(panels)
    note = f"The first {len(panels)} runs; {left_out} more are in the data." if left_out else None
    return Plot("reliability", "Reliability diagrams", COLUMNS, rows, panels, note)


def _row(run: RunStatistics, one: Bin) -> Sequence[Cell]:
    low, high = one.interval or (None, None)
    return (
        run.run, run.label, one.lo, one.hi, one.n, one.mean_confidence, one.accuracy, low, high
    )  # fmt: skip


def _panel(run: RunStatistics, color: str) -> Panel:
    ece = f"ECE {run.ece.value:.3f}" if run.ece else "ECE unknown"
    return Panel(
        run.path,
        run.label,
        f"Reliability diagram of {run.label}: accuracy against confidence in "
        f"{sum(one.n > 0 for one in run.bins)} bins, {ece}",
        354,
        _drawing(run.bins, color),
        margins=Margins(left=36, right=12, top=24, bottom=42),
    )


def _drawing(bins: Sequence[Bin], color: str) -> "Callable[[Axes], None]":
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
        most = max(one.n for one in bins)
        for one in bins:
            _draw_bin(axes, one, most, color)
        axes.text(0, _FLOOR + _TALLEST + 0.05, "tasks in the bin", color=MUTED, fontsize=SMALL)

    return draw


def _draw_bin(axes: "Axes", one: Bin, most: int, color: str) -> None:
    if one.n == 0 or one.mean_confidence is None or one.accuracy is None:
        return
    at = one.mean_confidence
    if one.interval:
        axes.plot([at, at], one.interval, color=color, linewidth=1.5, solid_capstyle="butt")
    axes.plot(
        [at], [one.accuracy], "o", markersize=8, color=color, markeredgecolor=PAPER,
        markeredgewidth=1.5, clip_on=False, zorder=3,
    )  # fmt: skip
    middle, top = (one.lo + one.hi) / 2, _TALLEST * one.n / most
    axes.bar(middle, top, (one.hi - one.lo) * 0.8, bottom=_FLOOR, color=color, alpha=0.35)
    axes.text(
        middle, _FLOOR + top + 0.015, f"{one.n}", ha="center", va="bottom", fontsize=SMALL - 1,
        color=MUTED,
    )  # fmt: skip
