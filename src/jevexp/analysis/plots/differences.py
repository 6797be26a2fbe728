"""Every candidate held against the baseline: the differences with their intervals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jevexp.analysis.comparison import Comparison, LatencyRatio, PairResult
from jevexp.analysis.metric import Metric
from jevexp.analysis.names import METRICS, Named
from jevexp.analysis.plots.plot import Cell, Panel, Plot
from jevexp.analysis.plots.rows import Line, draw_lines, height, margins
from jevexp.analysis.plots.scales import logarithmic
from jevexp.analysis.plots.style import CANDIDATE, MUTED, VERDICTS
from jevexp.analysis.text import three_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = (
    "metric", "baseline", "candidate", "value", "low", "high",
    "equivalence_low", "equivalence_high", "p", "p_adjusted", "verdict", "n", "clusters",
)  # fmt: skip


def differences(comparison: Comparison) -> Plot | None:
    """A panel a metric; None where nothing was compared."""
    rows: list[Sequence[Cell]] = []
    panels = []
    for named in METRICS:
        found = [
            (pair, metric)
            for pair in comparison.pairs
            if (metric := pair.metric(named.name)) is not None
        ]
        if found:
            rows += [_row(comparison, pair, metric) for pair, metric in found]
            panels.append(_panel(comparison, named, found))
    if timed := [(pair, pair.latency) for pair in comparison.pairs if pair.latency]:
        rows += [_latency_row(comparison, pair, found) for pair, found in timed]
        panels.append(_latency(comparison, timed))
    if not panels:
        return None
    return Plot("differences", "Differences to the baseline", COLUMNS, rows, panels)


def _row(comparison: Comparison, pair: PairResult, metric: Metric) -> Sequence[Cell]:
    return (
        metric.name,
        comparison.runs[pair.baseline].label,
        comparison.runs[pair.candidate].label,
        metric.delta,
        *(metric.interval or (None, None)),
        *(metric.equivalence or (None, None)),
        metric.p,
        metric.p_adjusted,
        metric.verdict,
        metric.n,
        metric.clusters,
    )


def _latency_row(comparison: Comparison, pair: PairResult, found: LatencyRatio) -> Sequence[Cell]:
    """The ratio of latencies, which is no difference and is not tested."""
    low, high = found.interval or (None, None)
    names = (comparison.runs[pair.baseline].label, comparison.runs[pair.candidate].label)
    return ("latency_ratio", *names, found.ratio, low, high, *[None] * 5, found.n, None)


def _panel(
    comparison: Comparison, named: Named, found: Sequence[tuple[PairResult, Metric]]
) -> Panel:
    lines = [
        Line(
            comparison.runs[pair.candidate].label,
            metric.delta,
            metric.interval,
            VERDICTS.get(metric.verdict or "", MUTED),
            _said(metric, alone=len(found) == 1),
        )
        for pair, metric in found
    ]
    ends = [abs(end) for _, metric in found for end in metric.interval or (metric.delta,)]
    margin = comparison.options.margin
    limit = max(*ends, 2 * margin) * 1.05
    first, metric = found[0]
    tested = metric.verdict is not None
    baseline = comparison.runs[first.baseline].label
    return Panel(
        named.name,
        f"{named.title}: {metric.verdict}"
        if tested and len(found) == 1
        else f"{named.title}, {named.better}",
        f"Difference in {named.title} of {len(lines)} runs to {baseline}, with intervals",
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


def _said(metric: Metric, *, alone: bool) -> str:
    """The difference, and the verdict where the title does not say it."""
    delta = f"{metric.delta:+.3f}".replace("-", "\u2212")
    return delta if alone or metric.verdict is None else f"{delta} {metric.verdict}"


def _latency(comparison: Comparison, timed: Sequence[tuple[PairResult, LatencyRatio]]) -> Panel:
    lines = [
        Line(comparison.runs[pair.candidate].label, found.ratio, found.interval, CANDIDATE,
             f"{three_digits(found.ratio)} ×")
        for pair, found in timed
    ]  # fmt: skip
    ends = [end for _, found in timed for end in (found.ratio, *(found.interval or ()))]

    def draw(axes: "Axes") -> None:
        logarithmic(axes, [*ends, 1])
        draw_lines(axes, lines, label="times the baseline's seconds (logarithmic)", origin=1)

    return Panel(
        "latency",
        "Latency, lower is better",
        f"How many times as long {len(lines)} runs take as the baseline, with intervals",
        height(len(lines)),
        draw,
        margins=margins(len(lines)),
    )
