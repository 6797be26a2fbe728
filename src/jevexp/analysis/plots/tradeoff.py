"""What accuracy costs: in seconds, and in bytes of weights."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jevexp.analysis.comparison import Comparison
from jevexp.analysis.plots.drawing import (
    MUTED,
    PAPER,
    RULE,
    SMALL,
    WIDE,
    WIDTH,
    Margins,
    Panel,
    Plot,
    color_of,
    logarithmic,
)
from jevexp.analysis.plots.labels import place_labels
from jevexp.analysis.statistics.intervals import Interval
from jevexp.analysis.tables import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ("cost", "run", "label", "value", "low", "high", "accuracy", "accuracy_low",
           "accuracy_high", "frontier")  # fmt: skip
_ROOMY = 6
# Pixels of height that a name needs where there are many.
_NAME = 7


@dataclass(frozen=True, slots=True)
class Point:
    """One run: what it costs with an interval, its accuracy with one."""

    run: str
    label: str
    cost: float
    cost_interval: Interval | None
    accuracy: float
    interval: Interval | None
    color: str

    def lines(self) -> "list[tuple[tuple[float, float], tuple[float, float]]]":
        """Its intervals, from their low to their high ends."""
        lines = []
        if self.interval:
            lines.append(((self.cost, self.interval.low), (self.cost, self.interval.high)))
        if self.cost_interval:
            low, high = self.cost_interval
            lines.append(((low, self.accuracy), (high, self.accuracy)))
        return lines


def tradeoff(comparison: Comparison) -> Plot | None:
    """A panel for seconds and one for megabytes, of the runs that have the number.

    None where no run has one, and for a single run, which has nothing to be traded for.
    """
    runs = comparison.runs
    if len(runs) < 2:
        return None
    seconds, megabytes = [], []
    for index, run in enumerate(runs):
        if run.accuracy is None:
            continue
        accuracy = (run.accuracy.value, run.accuracy.interval, color_of(runs, index))
        if run.latency and run.latency.median.value > 0:
            median = run.latency.median
            seconds.append(Point(run.run, run.label, median.value, median.interval, *accuracy))
        if run.weights_bytes:
            megabytes.append(Point(run.run, run.label, run.weights_bytes / 1e6, None, *accuracy))
    panels, rows = [], []
    for name, title, axis, points in (
        ("median_s", "Accuracy against latency", "median seconds a task", seconds),
        ("weights_mb", "Accuracy against size", "megabytes of weights", megabytes),
    ):
        if points:
            best = frontier(points)
            rows += [_row(name, point, point in best) for point in points]
            panels.append(_panel(name, title, axis, points, best))
    if not panels:
        return None
    return Plot("tradeoff", "Accuracy, speed and size", COLUMNS, rows, panels)


def frontier(points: Sequence[Point]) -> list[Point]:
    """The points that no other one beats in both accuracy and cost, the cheapest first."""
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.cost, -point.accuracy)):
        if not best or point.accuracy > best[-1].accuracy:
            best.append(point)
    return best


def _row(name: str, point: Point, best: bool) -> Sequence[Cell]:
    return (
        name, point.run, point.label, point.cost, *(point.cost_interval or (None, None)),
        point.accuracy, *(point.interval or (None, None)), "yes" if best else "no",
    )  # fmt: skip


def _panel(
    key: str, title: str, axis: str, points: Sequence[Point], best: Sequence[Point]
) -> Panel:
    names = ", ".join(point.label for point in best)
    return Panel(
        key,
        title,
        f"{title} of {len(points)} runs; nothing beats in both: {names}",
        300 if len(points) <= _ROOMY else max(420, _NAME * len(points)),
        _drawing(axis, points, best),
        width=WIDTH if len(points) <= _ROOMY else WIDE,
        margins=Margins(left=36, right=16, top=30, bottom=44),
    )


def _drawing(axis: str, points: Sequence[Point], best: Sequence[Point]) -> "Callable[[Axes], None]":
    def draw(axes: "Axes") -> None:
        _draw_scales(axes, axis, points)
        if len(best) > 1:
            axes.plot(
                [point.cost for point in best], [point.accuracy for point in best],
                color=MUTED, linewidth=1.5, drawstyle="steps-post", dashes=(4, 3), zorder=1,
            )  # fmt: skip
        for point in points:
            _draw_point(axes, point)
        # The frontier is named first: it gets the places beside its points.
        named = [*best, *(point for point in points if point not in best)]
        place_labels(
            axes,
            [(point.cost, point.accuracy, point.label) for point in named],
            [line for point in points for line in point.lines()],
        )

    return draw


def _draw_scales(axes: "Axes", axis: str, points: Sequence[Point]) -> None:
    from matplotlib.ticker import MaxNLocator

    logarithmic(
        axes, [end for point in points for end in (point.cost, *(point.cost_interval or ()))]
    )
    if len(points) <= _ROOMY:
        axes.set_ylim(0, 1.02)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
    else:
        # Many points need the room, and their intervals say how far they are apart.
        heights = [end for point in points for end in (point.accuracy, *(point.interval or ()))]
        axes.set_ylim(max(0, min(heights) - 0.02), min(1.02, max(heights) + 0.02))
        axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.tick_params(length=0, pad=6)
    axes.grid(color=RULE, linewidth=1)
    axes.set_axisbelow(True)
    axes.set_xlabel(f"{axis} (logarithmic)")
    axes.text(
        0, 1.03, "accuracy", transform=axes.transAxes, color=MUTED, fontsize=SMALL, va="bottom"
    )


def _draw_point(axes: "Axes", point: Point) -> None:
    for (x0, y0), (x1, y1) in point.lines():
        axes.plot(
            [x0, x1], [y0, y1], color=point.color, linewidth=1.5, solid_capstyle="butt", alpha=0.7
        )
    axes.plot(
        [point.cost], [point.accuracy], "o", markersize=9, color=point.color,
        markeredgecolor=PAPER, markeredgewidth=1.5, zorder=3,
    )  # fmt: skip
