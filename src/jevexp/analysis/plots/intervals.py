"""Metrics with their intervals: of every run by itself, and of every candidate's difference."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jevexp.analysis.comparison import Comparison, LatencyRatio, PairResult, RunStatistics
from jevexp.analysis.estimates import Difference, Estimate
from jevexp.analysis.metrics import LATENCY, METRICS, PARAPHRASES, Metric, Quantity
from jevexp.analysis.plots.drawing import (
    CANDIDATE,
    MUTED,
    VERDICTS,
    Line,
    Panel,
    Plot,
    color_of,
    draw_lines,
    height,
    logarithmic,
    margins,
    three_digits,
)
from jevexp.analysis.tables import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RANKED = ("metric", "rank", "run", "label", "value", "low", "high", "n", "clusters")
_COMPARED = (
    "metric", "baseline", "candidate", "value", "low", "high",
    "equivalence_low", "equivalence_high", "p", "p_adjusted", "verdict", "n", "clusters",
)  # fmt: skip

Ranking = Sequence[tuple[int, RunStatistics, Estimate]]
Compared = Sequence[tuple[PairResult, Difference]]


def leaderboard(comparison: Comparison) -> Plot:
    """A panel a metric that any run has; the best run is on top."""
    rows: list[Sequence[Cell]] = []
    panels = []
    for quantity in (*METRICS.values(), PARAPHRASES, LATENCY):
        ranking = _ranking(comparison.runs, quantity)
        if ranking:
            rows += [
                (quantity.name, rank, run.run, run.label, estimate.value,
                 *(estimate.interval or (None, None)), estimate.n, estimate.clusters)
                for rank, (_, run, estimate) in enumerate(ranking, 1)
            ]  # fmt: skip
            panels.append(_ranked_panel(comparison, quantity, ranking))
    return Plot("leaderboard", "Every run with its interval", _RANKED, rows, panels)


def estimate_of(run: RunStatistics, quantity: Quantity) -> Estimate | None:
    """What a run has of a metric, of its latency or of its agreement on paraphrases."""
    if quantity is LATENCY:
        return run.latency.median if run.latency else None
    if quantity is PARAPHRASES:
        return run.paraphrases.agreement if run.paraphrases else None
    return run.estimates[quantity.name]


def _ranking(runs: Sequence[RunStatistics], quantity: Quantity) -> Ranking:
    """The runs that have it with their places, the best first; equal ones as they were."""
    known = [
        (index, run, estimate)
        for index, run in enumerate(runs)
        if (estimate := estimate_of(run, quantity)) is not None
    ]
    sign = -1 if quantity.higher_is_better else 1
    return sorted(known, key=lambda ranked: sign * ranked[2].value)


def _ranked_panel(comparison: Comparison, quantity: Quantity, ranking: Ranking) -> Panel:
    lines = [
        Line(
            run.label,
            estimate.value,
            estimate.interval,
            color_of(comparison.runs, index),
            f"{three_digits(estimate.value)} s" if quantity is LATENCY else f"{estimate.value:.3f}",
        )
        for index, run, estimate in ranking
    ]
    ends = (one.interval.high if one.interval else one.value for *_, one in ranking)
    limit = 1.0 if quantity.share else max(ends) * 1.05 or 1.0
    best = ranking[0][1].label
    return Panel(
        quantity.name,
        f"{quantity.title}, {quantity.better}",
        f"{quantity.title} of {len(lines)} runs with intervals; best is {best}",
        height(len(lines)),
        lambda axes: draw_lines(axes, lines, label=quantity.unit, limits=(0, limit)),
        margins=margins(len(lines)),
    )


def differences(comparison: Comparison) -> Plot | None:
    """A panel a metric; None where nothing was compared."""
    rows: list[Sequence[Cell]] = []
    panels = []
    for metric in METRICS.values():
        compared = [
            (pair, difference)
            for pair in comparison.pairs
            if (difference := pair.difference(metric)) is not None
        ]
        if compared:
            rows += [_row(comparison, pair, difference) for pair, difference in compared]
            panels.append(_difference_panel(comparison, metric, compared))
    if timed := [(pair, pair.latency) for pair in comparison.pairs if pair.latency]:
        rows += [_latency_row(comparison, pair, latency) for pair, latency in timed]
        panels.append(_latency_panel(comparison, timed))
    if not panels:
        return None
    return Plot("differences", "Differences to the baseline", _COMPARED, rows, panels)


def _row(comparison: Comparison, pair: PairResult, difference: Difference) -> Sequence[Cell]:
    return (
        difference.name,
        comparison.runs[pair.baseline].label,
        comparison.runs[pair.candidate].label,
        difference.delta,
        *(difference.interval or (None, None)),
        *(difference.equivalence or (None, None)),
        difference.p,
        difference.p_adjusted,
        difference.verdict,
        difference.n,
        difference.clusters,
    )


def _latency_row(comparison: Comparison, pair: PairResult, latency: LatencyRatio) -> Sequence[Cell]:
    """The ratio of latencies, which is no difference and is not tested."""
    low, high = latency.interval or (None, None)
    names = (comparison.runs[pair.baseline].label, comparison.runs[pair.candidate].label)
    return ("latency_ratio", *names, latency.ratio, low, high, *[None] * 5, latency.n, None)


def _difference_panel(comparison: Comparison, metric: Metric, compared: Compared) -> Panel:
    lines = [
        Line(
            comparison.runs[pair.candidate].label,
            difference.delta,
            difference.interval,
            VERDICTS.get(difference.verdict or "", MUTED),
            _in_words(difference, alone=len(compared) == 1),
        )
        for pair, difference in compared
    ]
    ends = [abs(end) for _, one in compared for end in one.interval or (one.delta,)]
    margin = comparison.options.margin
    limit = max(*ends, 2 * margin) * 1.05
    first, difference = compared[0]
    tested = difference.verdict is not None
    baseline = comparison.runs[first.baseline].label
    return Panel(
        metric.name,
        f"{metric.title}: {difference.verdict}"
        if tested and len(compared) == 1
        else f"{metric.title}, {metric.better}",
        f"Difference in {metric.title} of {len(lines)} runs to {baseline}, with intervals",
        height(len(lines)),
        lambda axes: draw_lines(
            axes,
            lines,
            label=f"minus the baseline; shaded: ±{margin:g}" if tested else "minus the baseline",
            limits=(-limit, limit),
            # Without a test the margin means nothing.
            band=margin if tested else None,
            origin=0,
        ),
        margins=margins(len(lines)),
    )


def _in_words(difference: Difference, *, alone: bool) -> str:
    """The difference, and the verdict where the title does not say it."""
    delta = f"{difference.delta:+.3f}".replace("-", "\u2212")
    return delta if alone or difference.verdict is None else f"{delta} {difference.verdict}"


def _latency_panel(
    comparison: Comparison, timed: Sequence[tuple[PairResult, LatencyRatio]]
) -> Panel:
    lines = [
        Line(comparison.runs[pair.candidate].label, latency.ratio, latency.interval, CANDIDATE,
             f"{three_digits(latency.ratio)} ×")
        for pair, latency in timed
    ]  # fmt: skip
    ends = [end for _, latency in timed for end in (latency.ratio, *(latency.interval or ()))]

    def draw(axes: "Axes") -> None:
        logarithmic(axes, [*ends, 1])
        draw_lines(axes, lines, label="times the baseline's seconds (logarithmic)", origin=1)

    return Panel(
        LATENCY.name,
        f"{LATENCY.title}, {LATENCY.better}",
        f"How many times as long {len(lines)} runs take as the baseline, with intervals",
        height(len(lines)),
        draw,
        margins=margins(len(lines)),
    )
