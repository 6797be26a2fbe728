"""Everybody against everybody: the difference in accuracy of every two runs."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jevexp.analysis.comparison import Comparison, MatrixCell
from jevexp.analysis.plots.plot import Cell, Margins, Panel, Plot
from jevexp.analysis.plots.style import BAND, INK, MUTED, PAPER, SMALL, VERDICTS
from jevexp.analysis.text import shortened, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ("first", "second", "delta", "low", "high", "p", "p_adjusted", "verdict", "n", "clusters")
# With more runs than this a cell is too small for a number.
MOST_NUMBERS = 12
_NAME = 150
_LETTER = 6.6


def pairwise(comparison: Comparison) -> Plot | None:
    """Row minus column, below the diagonal; None for fewer than two runs."""
    labels = [run.label for run in comparison.runs]
    if len(labels) < 2:
        return None
    numbers = len(labels) <= MOST_NUMBERS
    cell = 50 if numbers else 14
    row = 28 if numbers else 14
    panel = Panel(
        "accuracy",
        "Accuracy, row minus column",
        f"Difference in accuracy between every two of {len(labels)} runs, coloured by verdict",
        row * len(labels) + 40,
        _drawing(labels, comparison.matrix, numbers=numbers),
        width=_NAME + cell * len(labels) + 12,
        margins=Margins(left=_NAME, right=12, top=32, bottom=8),
    )
    rows = [_row(labels, one) for one in comparison.matrix]
    return Plot("pairwise", "Every two runs", COLUMNS, rows, [panel])


def _row(labels: Sequence[str], one: MatrixCell) -> Sequence[Cell]:
    names = (labels[one.first], labels[one.second])
    metric = one.accuracy
    if metric is None:
        return (*names, *[None] * (len(COLUMNS) - 2))
    return (
        *names, metric.delta, *(metric.interval or (None, None)), metric.p, metric.p_adjusted,
        metric.verdict, metric.n, metric.clusters,
    )  # fmt: skip


def _drawing(
    labels: Sequence[str], matrix: Sequence[MatrixCell], *, numbers: bool
) -> "Callable[[Axes], None]":
    def draw(axes: "Axes") -> None:
        axes.set_xlim(0, len(labels))
        axes.set_ylim(len(labels), 0)
        axes.set_axis_off()
        for place, label in enumerate(labels):
            axes.annotate(
                f"{shortened(visible(label), int(_NAME / _LETTER) - 3)}  {place + 1}",
                (0, place + 0.5), (-8, 0), textcoords="offset points", ha="right", va="center",
                fontsize=SMALL, color=INK,
            )  # fmt: skip
            if numbers or place % 5 == 4 or place == 0:
                axes.text(
                    place + 0.5, -0.2, str(place + 1), ha="center", va="bottom", fontsize=SMALL,
                    color=MUTED,
                )  # fmt: skip
        for one in matrix:
            _draw_cell(axes, one, numbers=numbers)

    return draw


def _draw_cell(axes: "Axes", one: MatrixCell, *, numbers: bool) -> None:
    from matplotlib.patches import Rectangle

    metric = one.accuracy
    told = metric is not None and metric.verdict in ("better", "worse")
    color = VERDICTS[str(metric.verdict)] if metric and told else BAND
    axes.add_patch(
        Rectangle((one.first + 0.03, one.second + 0.03), 0.94, 0.94, color=color, linewidth=0)
    )
    if numbers and metric is not None:
        text = f"{metric.delta:+.3f}".replace("-", "\u2212")
        axes.text(
            one.first + 0.5, one.second + 0.5, text, ha="center", va="center", fontsize=SMALL,
            color=PAPER if told else INK,
        )  # fmt: skip
