"""Values as lines with their intervals: of every run, of every difference, and of latencies."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from jevexp.analysis.comparison import Comparison, PairResult, RunStatistics
from jevexp.analysis.estimates import Difference, Estimate
from jevexp.analysis.intervals import Interval
from jevexp.analysis.metrics import LATENCY, METRICS, PARAPHRASES, Metric, Quantity
from jevexp.analysis.plots.drawing import (
    BAND,
    CANDIDATE,
    LETTER,
    MOST_TICKS,
    MUTED,
    PAPER,
    TEXT,
    VERDICTS,
    WIDTH,
    Margins,
    Panel,
    Plot,
    color_of,
    draw_point,
    logarithmic,
    signed,
    three_digits,
    write_beside,
)
from jevexp.analysis.tables import ESTIMATE, Cell, cells
from jevexp.untrusted.console import shortened, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RANKED = ("metric", "rank", "run", "label", *ESTIMATE)
_COMPARED = (
    "metric", "baseline", "candidate", "value", "low", "high",
    "equivalence_low", "equivalence_high", "p", "p_adjusted", "verdict", "n", "clusters",
)  # fmt: skip
_SECONDS = ("run", "label", "percentile", "seconds")
# Each stands for a twentieth of the answers.
_TWENTIETHS = slice(2, 100, 5)
# With more lines than this a name stands beside its line and not above it.
_ROOMY = 10
# Pixels.
_ROW = 44
_COMPACT_ROW = 17
_NAME = 120


@dataclass(frozen=True, slots=True)
class Line:
    """A value of one run with its interval; `text` says it, `dots` are single values."""

    name: str
    value: float
    interval: Interval | None
    color: str
    text: str
    dots: Sequence[float] = ()


def leaderboard(comparison: Comparison) -> Plot:
    """A panel a metric that any run has; the best run is on top, equal ones as they were."""
    runs = comparison.runs
    rows, panels = [], []
    for quantity in (*METRICS.values(), PARAPHRASES, LATENCY):
        ranking = [
            (estimate, run, color_of(runs, index))
            for index, run in enumerate(runs)
            if (estimate := _estimate_of(run, quantity)) is not None
        ]
        if not ranking:
            continue
        sign = -1 if quantity.higher_is_better else 1
        ranking.sort(key=lambda ranked: sign * ranked[0].value)
        lines = []
        for rank, (estimate, run, color) in enumerate(ranking, 1):
            rows.append((quantity.name, rank, run.run, run.label, *cells(estimate, ESTIMATE)))
            value = estimate.value
            text = f"{three_digits(value)} s" if quantity is LATENCY else f"{value:.3f}"
            lines.append(Line(run.label, value, estimate.interval, color, text))
        most = max(line.interval.high if line.interval else line.value for line in lines)
        panels.append(
            _panel(
                quantity,
                lines,
                alt=f"{quantity.title} of {len(lines)} runs with intervals; best is "
                f"{lines[0].name}",
                label=quantity.unit,
                limits=(0, 1 if quantity.share else most * 1.05 or 1),
            )
        )
    return Plot("leaderboard", "Every run with its interval", _RANKED, rows, panels)


def _estimate_of(run: RunStatistics, quantity: Quantity) -> Estimate | None:
    if quantity is LATENCY:
        return run.latency.median if run.latency else None
    if quantity is PARAPHRASES:
        return run.paraphrases.agreement if run.paraphrases else None
    return run.estimates[quantity.name]


def differences(comparison: Comparison) -> Plot:
    """A panel a metric, and one for the ratios of latencies, which are not tested."""
    labels = [run.label for run in comparison.runs]
    rows: list[Sequence[Cell]] = []
    panels = []
    for metric in METRICS.values():
        compared = [
            (pair, difference)
            for pair in comparison.pairs
            if (difference := pair.difference(metric)) is not None
        ]
        for pair, difference in compared:
            names = (labels[pair.baseline], labels[pair.candidate])
            tested = cells(difference, _COMPARED[4:])
            rows.append((metric.name, *names, difference.delta, *tested))
        if compared:
            panels.append(_difference_panel(comparison, metric, compared))
    lines = []
    for pair in comparison.pairs:
        if (latency := pair.latency) is None:
            continue
        baseline, candidate = labels[pair.baseline], labels[pair.candidate]
        ends = latency.interval or (None, None)
        row = ("latency_ratio", baseline, candidate, latency.ratio, *ends)
        rows.append((*row, *[None] * 5, latency.n, None))
        text = f"{three_digits(latency.ratio)} ×"
        lines.append(Line(candidate, latency.ratio, latency.interval, CANDIDATE, text))
    if lines:
        panels.append(
            _panel(
                LATENCY,
                lines,
                alt=f"How many times as long {len(lines)} runs take as the baseline, "
                "with intervals",
                label="times the baseline's seconds (logarithmic)",
                origin=1,
            )
        )
    return Plot("differences", "Differences to the baseline", _COMPARED, rows, panels)


def _difference_panel(
    comparison: Comparison, metric: Metric, compared: Sequence[tuple[PairResult, Difference]]
) -> Panel:
    first, difference = compared[0]
    tested = difference.verdict is not None
    # Of one pair the title says the verdict.
    alone = len(compared) == 1
    margin = comparison.options.margin
    lines = [
        Line(
            comparison.runs[pair.candidate].label,
            difference.delta,
            difference.interval,
            VERDICTS.get(difference.verdict or "", MUTED),
            signed(difference.delta)
            if alone or difference.verdict is None
            else f"{signed(difference.delta)} {difference.verdict}",
        )
        for pair, difference in compared
    ]
    ends = [abs(end) for line in lines for end in line.interval or (line.value,)]
    limit = max(*ends, 2 * margin) * 1.05
    baseline = comparison.runs[first.baseline].label
    return _panel(
        metric,
        lines,
        title=f"{metric.title}: {difference.verdict}" if tested and alone else None,
        alt=f"Difference in {metric.title} of {len(lines)} runs to {baseline}, with intervals",
        label=f"minus the baseline; shaded: ±{margin:g}" if tested else "minus the baseline",
        limits=(-limit, limit),
        # Without a test the margin means nothing.
        band=margin if tested else None,
        origin=0,
    )


def latency(comparison: Comparison) -> Plot:
    """A line a run: the median, and around it the middle half and nine tenths of the answers."""
    rows, lines = [], []
    for index, run in enumerate(comparison.runs):
        if not run.latency or run.latency.quantiles[0] <= 0:
            continue
        quantiles, median = run.latency.quantiles, run.latency.median.value
        rows += [(run.run, run.label, *point) for point in enumerate(quantiles)]
        lines.append(
            Line(
                run.label,
                median,
                Interval(quantiles[5], quantiles[95]),
                color_of(comparison.runs, index),
                f"{three_digits(median)} s",
                quantiles[_TWENTIETHS],
            )
        )
    panel = _panel(
        LATENCY,
        lines,
        key="seconds",
        title="Seconds a task",
        alt=f"Latency of {len(lines)} runs: median, middle half, and 5th to 95th percentile",
        label="seconds (logarithmic); a pale dot is a twentieth",
    )
    return Plot("latency", "How long answers take", _SECONDS, rows, [panel] if lines else [])


def _panel(
    quantity: Quantity,
    lines: Sequence[Line],
    *,
    alt: str,
    key: str | None = None,
    title: str | None = None,
    **axis: Any,
) -> Panel:
    """The lines from top to bottom; `axis` as in `_draw`, title and key those of the quantity."""
    roomy = len(lines) <= _ROOMY
    margins = Margins(left=18 if roomy else _NAME + 16, right=18, top=4)
    return Panel(
        key or quantity.name,
        title or f"{quantity.title}, {quantity.better}",
        alt,
        int(len(lines) * (_ROW if roomy else _COMPACT_ROW) + margins.top + margins.bottom),
        partial(_draw, lines=lines, **axis),
        margins=margins,
    )


def _draw(
    axes: "Axes",
    *,
    lines: Sequence[Line],
    label: str,
    limits: tuple[float, float] | None = None,
    band: float | None = None,
    origin: float | None = None,
) -> None:
    """Draw at least one line on a horizontal axis; without `limits` it is logarithmic."""
    # `band` is half the width of the shaded area around zero; at `origin` there is no difference.
    from matplotlib.ticker import MaxNLocator

    roomy = len(lines) <= _ROOMY
    if limits:
        axes.set_xlim(*limits)
        axes.xaxis.set_major_locator(MaxNLocator(MOST_TICKS, steps=[1, 2, 2.5, 5, 10]))
    else:
        drawn = [x for line in lines for x in (line.value, *(line.interval or ()), *line.dots)]
        logarithmic(axes, drawn if origin is None else [*drawn, origin])
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_yticks([])
    # Where the names take half of the width, centred text would be cut off.
    axes.set_xlabel(label, loc="center" if roomy else "right")
    if band is not None:
        axes.axvspan(-band, band, color=BAND, linewidth=0, zorder=0)
    if origin is not None:
        axes.axvline(origin, color=MUTED, linewidth=1)
    for place, line in enumerate(lines):
        y = place + (0.17 if roomy else 0)
        if line.interval:
            axes.plot(line.interval, [y, y], color=line.color, linewidth=2)
        if line.dots:
            axes.plot(
                line.dots, [y] * len(line.dots), "o", markersize=7, color=line.color, alpha=0.25,
                markeredgewidth=0,
            )  # fmt: skip
        draw_point(axes, line.value, y, line.color)
        if roomy:
            _write_above(axes, line, place - 0.17)
        else:
            write_beside(axes, place, shortened(visible(line.name), int(_NAME / LETTER)))


def _write_above(axes: "Axes", line: Line, y: float) -> None:
    name = shortened(visible(line.name), int((WIDTH - 40) / LETTER - len(line.text)))
    # The lines of the grid do not run through the letters.
    box = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.5}
    common: dict[str, Any] = {
        "va": "center", "fontsize": TEXT, "clip_on": False, "bbox": box,
        "transform": axes.get_yaxis_transform(),
    }  # fmt: skip
    axes.text(0, y, name, **common)
    axes.text(1, y, line.text, color=line.color, ha="right", fontweight="bold", **common)
