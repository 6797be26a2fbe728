"""Heat maps: the accuracy of runs on families of tasks, and of every two runs."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jevexp.analysis.comparison import Comparison, Family, MatrixCell, RunStatistics
from jevexp.analysis.metrics import ACCURACY
from jevexp.analysis.plots.drawing import (
    ABSENT,
    BAND,
    INK,
    MUTED,
    PAPER,
    SMALL,
    VERDICTS,
    Margins,
    Panel,
    Plot,
    fill,
    ink_on,
    level,
)
from jevexp.analysis.tables import Cell
from jevexp.untrusted.console import shortened, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# With more runs than this a cell of two runs is too small for a number.
MOST_NUMBERS = 12
_FAMILIES = ("run", "label", "family", "correct", "n", "accuracy", "low", "high")
_PAIRS = ("first", "second", "delta", "low", "high", "p", "p_adjusted", "verdict", "n", "clusters")
_LETTER = 6.6
# Pixels: of a family's cell, of a run's row and name, and for the last family's slanted name.
_CELL = 54
_ROW = 26
_NAME = 170
_SLANT = 60
_PAIR_NAME = 150


def families(comparison: Comparison) -> Plot | None:
    """Runs from top to bottom, families from left to right; None where nothing was scored."""
    runs = comparison.runs
    names = family_names(runs)
    if not names:
        return None
    rows = [_family_row(run, family) for run in runs for family in run.families]
    panel = Panel(
        ACCURACY.name,
        "Accuracy by family",
        f"Accuracy of {len(runs)} runs on the families {', '.join(names)}",
        _ROW * len(runs) + 100,
        _draw_families(runs, names),
        width=_NAME + _CELL * len(names) + _SLANT,
        margins=Margins(left=_NAME, right=_SLANT, top=92, bottom=8),
    )
    return Plot("families", "Accuracy by family", _FAMILIES, rows, [panel])


def family_names(runs: Sequence[RunStatistics]) -> list[str]:
    """The families in which any run was scored, in the order they come."""
    return list(
        dict.fromkeys(family.name for run in runs for family in run.families if family.accuracy)
    )


def _family_row(run: RunStatistics, family: Family) -> Sequence[Cell]:
    accuracy = family.accuracy
    low, high = (accuracy and accuracy.interval) or (None, None)
    return (
        run.run, run.label, family.name, family.correct, accuracy.n if accuracy else 0,
        accuracy.value if accuracy else None, low, high,
    )  # fmt: skip


def _draw_families(runs: Sequence[RunStatistics], names: Sequence[str]) -> "Callable[[Axes], None]":
    def draw(axes: "Axes") -> None:
        axes.set_xlim(0, len(names))
        axes.set_ylim(len(runs), 0)
        axes.set_axis_off()
        for column, name in enumerate(names):
            axes.text(
                column + 0.5, -0.3, shortened(visible(name), 14), rotation=40, fontsize=SMALL,
                color=MUTED, ha="left", va="bottom", rotation_mode="anchor",
            )  # fmt: skip
        for row, run in enumerate(runs):
            axes.annotate(
                shortened(visible(run.label), int(_NAME / _LETTER)), (0, row + 0.5), (-8, 0),
                textcoords="offset points", ha="right", va="center", fontsize=SMALL, color=INK,
            )  # fmt: skip
            by_name = {family.name: family for family in run.families}
            for column, name in enumerate(names):
                _draw_family(axes, row, column, by_name.get(name))

    return draw


def _draw_family(axes: "Axes", row: int, column: int, family: Family | None) -> None:
    from matplotlib.patches import Rectangle

    accuracy = family.accuracy if family else None
    color = fill(level(accuracy.value)) if accuracy else ABSENT
    axes.add_patch(Rectangle((column + 0.02, row + 0.04), 0.96, 0.92, color=color, linewidth=0))
    if accuracy:
        axes.text(
            column + 0.5, row + 0.5, f"{accuracy.value:.2f}", ha="center", va="center",
            fontsize=SMALL, color=ink_on(level(accuracy.value)),
        )  # fmt: skip


def pairwise(comparison: Comparison) -> Plot | None:
    """Row minus column, below the diagonal; None for fewer than two runs."""
    labels = [run.label for run in comparison.runs]
    if len(labels) < 2:
        return None
    numbers = len(labels) <= MOST_NUMBERS
    cell = 50 if numbers else 14
    row = 28 if numbers else 14
    panel = Panel(
        ACCURACY.name,
        "Accuracy, row minus column",
        f"Difference in accuracy between every two of {len(labels)} runs, coloured by verdict",
        row * len(labels) + 40,
        _draw_pairs(labels, comparison.matrix, numbers=numbers),
        width=_PAIR_NAME + cell * len(labels) + 12,
        margins=Margins(left=_PAIR_NAME, right=12, top=32, bottom=8),
    )
    rows = [_pair_row(labels, pair) for pair in comparison.matrix]
    return Plot("pairwise", "Every two runs", _PAIRS, rows, [panel])


def _pair_row(labels: Sequence[str], pair: MatrixCell) -> Sequence[Cell]:
    names = (labels[pair.first], labels[pair.second])
    difference = pair.accuracy
    if difference is None:
        return (*names, *[None] * (len(_PAIRS) - 2))
    return (
        *names, difference.delta, *(difference.interval or (None, None)), difference.p,
        difference.p_adjusted, difference.verdict, difference.n, difference.clusters,
    )  # fmt: skip


def _draw_pairs(
    labels: Sequence[str], matrix: Sequence[MatrixCell], *, numbers: bool
) -> "Callable[[Axes], None]":
    def draw(axes: "Axes") -> None:
        axes.set_xlim(0, len(labels))
        axes.set_ylim(len(labels), 0)
        axes.set_axis_off()
        for place, label in enumerate(labels):
            axes.annotate(
                f"{shortened(visible(label), int(_PAIR_NAME / _LETTER) - 3)}  {place + 1}",
                (0, place + 0.5), (-8, 0), textcoords="offset points", ha="right", va="center",
                fontsize=SMALL, color=INK,
            )  # fmt: skip
            if numbers or place % 5 == 4 or place == 0:
                axes.text(
                    place + 0.5, -0.2, str(place + 1), ha="center", va="bottom", fontsize=SMALL,
                    color=MUTED,
                )  # fmt: skip
        for pair in matrix:
            _draw_pair(axes, pair, numbers=numbers)

    return draw


def _draw_pair(axes: "Axes", pair: MatrixCell, *, numbers: bool) -> None:
    from matplotlib.patches import Rectangle

    difference = pair.accuracy
    told = difference is not None and difference.verdict in ("better", "worse")
    color = VERDICTS[str(difference.verdict)] if difference and told else BAND
    axes.add_patch(
        Rectangle((pair.first + 0.03, pair.second + 0.03), 0.94, 0.94, color=color, linewidth=0)
    )
    if numbers and difference is not None:
        text = f"{difference.delta:+.3f}".replace("-", "\u2212")
        axes.text(
            pair.first + 0.5, pair.second + 0.5, text, ha="center", va="center", fontsize=SMALL,
            color=PAPER if told else INK,
        )  # fmt: skip
