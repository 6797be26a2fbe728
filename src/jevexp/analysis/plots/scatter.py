"""Accuracy against something else: confidence, seconds, and bytes of weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from jevexp.analysis.comparison import Bin, Comparison
from jevexp.analysis.intervals import Interval
from jevexp.analysis.metrics import CALIBRATION
from jevexp.analysis.plots.drawing import (
    MUTED,
    SMALL,
    WIDE,
    WIDTH,
    Margins,
    Panel,
    Plot,
    color_of,
    draw_point,
    logarithmic,
)
from jevexp.analysis.tables import cells
from jevexp.untrusted.console import shortened, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy import float64
    from numpy.typing import NDArray

    # Points, or the left, lower, right and upper edges of boxes.
    Pixels = NDArray[float64]

_BINS = ("run", "label", "lo", "hi", "n", "mean_confidence", "accuracy", "low", "high")
_TRADEOFF = ("cost", "run", "label", "value", "low", "high", "accuracy", "accuracy_low",
             "accuracy_high", "frontier")  # fmt: skip
# More panels of one kind than this are no small multiples any more.
_MOST_PANELS = 12
# Where the counts of a reliability diagram stand, below the diagram itself.
_FLOOR = -0.42
_TALLEST = 0.24
_QUARTERS = ([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])

# With more points than this the panel is wide, and as many pixels high for each name.
_ROOMY = 6
_NAME = 7

# Pixels of a line of text.
_LINE = 14.0
# Where not all names have room, all are tried with fewer letters.
_LETTERS = (26, 14, 8, 3)
# Where a name is tried first: how it is aligned, then pixels across and up from its point.
_BESIDE: "Sequence[Place]" = (
    ("left", 9, 0), ("left", 6, 15), ("left", 6, -15),
    ("right", -9, 0), ("right", -6, 15), ("right", -6, -15),
    ("center", 0, 16), ("center", 0, -16),
)  # fmt: skip
_ALIGNED = {"left": 0.0, "center": 0.5, "right": 1.0}
_POINT = 6.0
# How far a name may reach beyond the axes to the right and above.
_SPARE = 12.0
# Where else names are tried: rows of the axes, this far along each.
_STEP = 8.0

Place = tuple[str, float, float]
Line = tuple[tuple[float, float], tuple[float, float]]


def reliability(comparison: Comparison) -> Plot:
    """A panel a run that has distributions."""
    runs = comparison.runs
    rows, panels = [], []
    for index, run in enumerate(runs):
        if not run.bins:
            continue
        rows += [(run.run, run.label, *cells(bin_, _BINS[2:])) for bin_ in run.bins]
        estimate = run.estimates[CALIBRATION.name]
        error = f"{CALIBRATION.heading} {f'{estimate.value:.3f}' if estimate else 'unknown'}"
        panels.append(
            Panel(
                run.path,
                run.label,
                f"Reliability diagram of {run.label}: accuracy against confidence in "
                f"{sum(bin_.n > 0 for bin_ in run.bins)} bins, {error}",
                354,
                partial(_draw_bins, bins=run.bins, color=color_of(runs, index)),
                margins=Margins(left=36, right=12, top=24, bottom=42),
            )
        )
    shown = panels[:_MOST_PANELS]
    left_out = len(panels) - len(shown)
    note = f"The first {len(shown)} runs; {left_out} more are in the data." if left_out else None
    return Plot("reliability", "Reliability diagrams", _BINS, rows, shown, note)


def _draw_bins(axes: "Axes", *, bins: Sequence[Bin], color: str) -> None:
    axes.set_xlim(0, 1)
    axes.set_ylim(_FLOOR - 0.03, 1.02)
    axes.set_xticks(*_QUARTERS)
    axes.set_yticks(*_QUARTERS)
    axes.set_xlabel("confidence in the chosen option")
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, dashes=(4, 3))
    axes.text(0, 1.06, "share right", color=MUTED)
    axes.text(0, _FLOOR + _TALLEST + 0.05, "tasks in the bin", color=MUTED)
    most = max(bin_.n for bin_ in bins)
    for bin_ in bins:
        if bin_.mean_confidence is None or bin_.accuracy is None:
            continue
        if bin_.interval:
            axes.plot([bin_.mean_confidence] * 2, bin_.interval, color=color, linewidth=1.5)
        draw_point(axes, bin_.mean_confidence, bin_.accuracy, color)
        middle, top = (bin_.lo + bin_.hi) / 2, _TALLEST * bin_.n / most
        axes.bar(middle, top, (bin_.hi - bin_.lo) * 0.8, bottom=_FLOOR, color=color, alpha=0.35)
        axes.text(
            middle, _FLOOR + top + 0.015, f"{bin_.n}", ha="center", va="bottom",
            fontsize=SMALL - 1, color=MUTED,
        )  # fmt: skip


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

    def lines(self) -> list[Line]:
        """Its intervals, from their low to their high ends."""
        lines: list[Line] = []
        if self.interval:
            lines.append(((self.cost, self.interval.low), (self.cost, self.interval.high)))
        if self.cost_interval:
            low, high = self.cost_interval
            lines.append(((low, self.accuracy), (high, self.accuracy)))
        return lines


def tradeoff(comparison: Comparison) -> Plot:
    """A panel for seconds and one for megabytes, of the runs that have the number.

    It is empty for a single run, which has nothing to be traded for.
    """
    runs = comparison.runs
    seconds, megabytes = [], []
    for index, run in enumerate(runs if len(runs) > 1 else ()):
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
        if not points:
            continue
        best = frontier(points)
        for point in points:
            ends = (*cells(point, ("accuracy", "low", "high")), "yes" if point in best else "no")
            cost = (point.cost, *(point.cost_interval or (None, None)))
            rows.append((name, point.run, point.label, *cost, *ends))
        roomy = len(points) <= _ROOMY
        panels.append(
            Panel(
                name,
                title,
                f"{title} of {len(points)} runs; nothing beats in both: "
                + ", ".join(point.label for point in best),
                300 if roomy else max(420, _NAME * len(points)),
                partial(_draw_points, axis=axis, points=points, best=best),
                width=WIDTH if roomy else WIDE,
                margins=Margins(left=36, right=16, top=30, bottom=44),
            )
        )
    return Plot("tradeoff", "Accuracy, speed and size", _TRADEOFF, rows, panels)


def frontier(points: Sequence[Point]) -> list[Point]:
    """The points that no other one beats in both accuracy and cost, the cheapest first."""
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.cost, -point.accuracy)):
        if not best or point.accuracy > best[-1].accuracy:
            best.append(point)
    return best


def _draw_points(
    axes: "Axes", *, axis: str, points: Sequence[Point], best: Sequence[Point]
) -> None:
    from matplotlib.ticker import MaxNLocator

    logarithmic(axes, (x for point in points for x in (point.cost, *(point.cost_interval or ()))))
    if len(points) <= _ROOMY:
        axes.set_ylim(0, 1.02)
        axes.set_yticks(*_QUARTERS)
    else:
        # Many points need the room, and their intervals say how far they are apart.
        heights = [y for point in points for y in (point.accuracy, *(point.interval or ()))]
        axes.set_ylim(max(0, min(heights) - 0.02), min(1.02, max(heights) + 0.02))
        axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel(f"{axis} (logarithmic)")
    axes.text(0, 1.03, "accuracy", transform=axes.transAxes, color=MUTED, va="bottom")
    if len(best) > 1:
        axes.plot(
            [point.cost for point in best], [point.accuracy for point in best], color=MUTED,
            linewidth=1.5, drawstyle="steps-post", dashes=(4, 3), zorder=1,
        )  # fmt: skip
    for point in points:
        for ends in point.lines():
            axes.plot(*zip(*ends, strict=True), color=point.color, linewidth=1.5, alpha=0.7)
        draw_point(axes, point.cost, point.accuracy, point.color)
    # The frontier is named first: it gets the places beside its points.
    named = [*best, *(point for point in points if point not in best)]
    place_labels(
        axes,
        [(point.cost, point.accuracy, point.label) for point in named],
        [line for point in points for line in point.lines()],
    )


def place_labels(
    axes: "Axes", points: Sequence[tuple[float, float, str]], lines: Sequence[Line] = ()
) -> None:
    """Write each name where it covers no point and no other name.

    A name with no room beside its point stands further off, at the end of a line. Where the axes
    cannot hold all of them so, all are shortened; only where that is not enough either, the last
    ones are written over others.

    Ours, since no library promises that: adjustText 1.4 moves names by forces until time is up,
    leaves overlaps among five crowded names, and takes 20 seconds for fifty.

    The scales and limits of the axes are set. Of `points`, x, y and name, the more important ones
    come first; `lines` are upright or level ones that no name should cover, as two corners each.
    """
    import numpy as np

    frame = np.add(axes.get_window_extent().extents, (0, 0, _SPARE, _SPARE))
    pixels = axes.transData.transform([(x, y) for x, y, _ in points])
    taken = np.hstack([pixels - _POINT, pixels + _POINT])
    corners = axes.transData.transform(np.reshape(lines, (-1, 2))).reshape(-1, 4)
    crossed = np.add(corners, (-1, -1, 1, 1))
    names = [visible(name) for *_, name in points]
    for letters in _LETTERS:
        texts = [shortened(name, letters) for name in names]
        places, complete = _places(texts, pixels, frame, taken, crossed)
        if complete:
            break
    line = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 4}
    for text, (x, y, _), place in zip(texts, points, places, strict=True):
        align, across, up = place
        axes.annotate(
            text, (x, y), (across, up), textcoords="offset points", ha=align, va="center",
            zorder=4, arrowprops=None if place in _BESIDE else line,
        )  # fmt: skip


def _places(
    texts: Sequence[str], pixels: "Pixels", frame: "Pixels", taken: "Pixels", crossed: "Pixels"
) -> tuple[list[Place], bool]:
    """A place for each text, relative to its point, and whether none covers another."""
    import numpy as np
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=SMALL)
    places: list[Place] = []
    complete = True
    for text, (x, y) in zip(texts, pixels, strict=True):
        width = text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] + 2
        beside = np.asarray(
            [_box(x + across - _ALIGNED[align] * width, y + up, width)
             for align, across, up in _BESIDE]
        )  # fmt: skip
        # Everywhere in the frame, the nearest to its point first.
        lefts = np.arange(frame[0], frame[2] - width, _STEP)
        heights = np.arange(frame[1] + _LINE / 2, frame[3] - _LINE / 2, _LINE)
        left, height = (grid.ravel() for grid in np.meshgrid(lefts, heights))
        nearest = np.argsort(np.hypot(left + width / 2 - x, height - y), kind="stable")
        anywhere = np.stack(_box(left, height, width), axis=1)[nearest]
        # Better a name that crosses a line than one far from its point.
        free_of_lines = np.vstack([taken, crossed])
        for boxes, others in ((beside, free_of_lines), (beside, taken), (anywhere, taken)):
            if (first := _first_free(boxes, frame, others)) is not None:
                break
        else:
            boxes, first, complete = beside, 0, False
        box = boxes[first]
        places.append(
            _BESIDE[first] if boxes is beside else ("left", box[0] - x, box[1] + _LINE / 2 - y)
        )
        taken = np.vstack([taken, box])
    return places, complete


def _box(left: Any, height: Any, width: float) -> tuple[Any, Any, Any, Any]:
    return left, height - _LINE / 2, left + width, height + _LINE / 2


def _first_free(boxes: "Pixels", frame: "Pixels", taken: "Pixels") -> int | None:
    """The first box within the frame that overlaps none of the taken ones."""
    import numpy as np

    inside = (boxes[:, :2] >= frame[:2]).all(axis=1) & (boxes[:, 2:] <= frame[2:]).all(axis=1)
    low, high = boxes[:, None, :2], boxes[:, None, 2:]
    apart = (low >= taken[:, 2:]) | (high <= taken[:, :2])
    free = inside & np.all(apart.any(axis=2), axis=1)
    return int(free.argmax()) if free.any() else None
