"""Every run by itself: each metric with its interval."""

from collections.abc import Sequence

from jevexp.analysis.comparison import Comparison, Estimate, RunStatistics
from jevexp.analysis.names import LATENCY, METRICS, PARAPHRASES, Named
from jevexp.analysis.plots.plot import Cell, Panel, Plot, color_of
from jevexp.analysis.plots.rows import Line, draw_lines, height, margins
from jevexp.analysis.text import three_digits

COLUMNS = ("metric", "rank", "run", "label", "value", "low", "high", "n", "clusters")
# Accuracy and agreement are shares: the whole of what is possible is shown.
_SHARES = ("accuracy", "paraphrases")

Ranked = Sequence[tuple[int, RunStatistics, Estimate]]


def leaderboard(comparison: Comparison) -> Plot:
    """A panel a metric that any run has; the best run is on top."""
    rows: list[Sequence[Cell]] = []
    panels = []
    for metric in (*METRICS, PARAPHRASES, LATENCY):
        ranked = _ranking(comparison.runs, metric)
        if ranked:
            rows += [
                _row(metric, rank, run, found) for rank, (_, run, found) in enumerate(ranked, 1)
            ]
            panels.append(_panel(comparison, metric, ranked))
    return Plot("leaderboard", "Every run with its interval", COLUMNS, rows, panels)


def estimate_of(run: RunStatistics, metric: Named) -> Estimate | None:
    """What a run has in a metric."""
    if metric is LATENCY:
        return run.latency.median if run.latency else None
    if metric is PARAPHRASES:
        return run.paraphrases.agreement if run.paraphrases else None
    found: Estimate | None = getattr(run, metric.name)
    return found


def _ranking(runs: Sequence[RunStatistics], metric: Named) -> Ranked:
    """The runs that have a metric with their places, the best first; equal ones as they were."""
    found = [
        (index, run, estimate)
        for index, run in enumerate(runs)
        if (estimate := estimate_of(run, metric)) is not None
    ]
    sign = -1 if metric.higher_is_better else 1
    return sorted(found, key=lambda one: sign * one[2].value)


def _row(metric: Named, rank: int, run: RunStatistics, found: Estimate) -> Sequence[Cell]:
    low, high = found.interval or (None, None)
    return (
        metric.name, rank, run.run, run.label, found.value, low, high, found.n, found.clusters
    )  # fmt: skip


def _panel(comparison: Comparison, metric: Named, ranked: Ranked) -> Panel:
    lines = [
        Line(
            run.label,
            found.value,
            found.interval,
            color_of(comparison.runs, index),
            _text(metric, found.value),
        )
        for index, run, found in ranked
    ]
    highest = max(found.interval.high if found.interval else found.value for *_, found in ranked)
    limit = 1.0 if metric.name in _SHARES else highest * 1.05 or 1.0
    best = ranked[0][1].label
    return Panel(
        metric.name,
        f"{metric.title}, {metric.better}",
        f"{metric.title} of {len(ranked)} runs with intervals; best is {best}",
        height(len(lines)),
        lambda axes: draw_lines(axes, lines, label=metric.unit, limits=(0, limit)),
        margins=margins(len(lines)),
    )


def _text(metric: Named, value: float) -> str:
    return f"{three_digits(value)} s" if metric is LATENCY else f"{value:.3f}"
