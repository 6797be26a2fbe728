"""Heat maps: the accuracy of runs on families of tasks, and of every two runs."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from jevexp.analysis.comparison import Comparison, RunStatistics
from jevexp.analysis.metrics import ACCURACY
from jevexp.analysis.plots.drawing import (
    ABSENT,
    BAND,
    FILLS,
    INK,
    LETTER,
    MUTED,
    PAPER,
    VERDICTS,
    Margins,
    Panel,
    Plot,
    ink_on,
    level,
    signed,
    write_beside,
)
from jevexp.analysis.tables import cells
from jevexp.untrusted.console import shortened, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# With more runs than this a cell of two runs is too small for a number.
MOST_NUMBERS = 12
_FAMILIES = ("run", "label", "family", "correct", "n", "accuracy", "low", "high")
_PAIRS = ("first", "second", "delta", "low", "high", "p", "p_adjusted", "verdict", "n", "clusters")
# Pixels: of a family's cell, of a run's row and name, and for the last family's slanted name.
_CELL = 54
_ROW = 26
_NAME = 170
_SLANT = 60
_PAIR_NAME = 150


def families(comparison: Comparison) -> Plot:
    """Runs from top to bottom, families from left to right."""
    runs = comparison.runs
    names = family_names(runs)
    rows = []
    for run in runs:
        for family in run.families:
            numbers = cells(family.accuracy, ("value", "low", "high"))
            n = family.accuracy.n if family.accuracy else 0
            rows.append((run.run, run.label, family.name, family.correct, n, *numbers))
    panel = Panel(
        ACCURACY.name,
        "Accuracy by family",
        f"Accuracy of {len(runs)} runs on the families {', '.join(names)}",
        _ROW * len(runs) + 100,
        partial(_draw_families, runs=runs, names=names),
        width=_NAME + _CELL * len(names) + _SLANT,
        margins=Margins(left=_NAME, right=_SLANT, top=92, bottom=8),
    )
    return Plot("families", "Accuracy by family", _FAMILIES, rows, [panel] if names else [])


def family_names(runs: Sequence[RunStatistics]) -> list[str]:
    """The families in which any run was scored, in the order they come."""
    return list(
        dict.fromkeys(family.name for run in runs for family in run.families if family.accuracy)
    )


def _draw_families(axes: "Axes", *, runs: Sequence[RunStatistics], names: Sequence[str]) -> None:
    axes.set_xlim(0, len(names))
    axes.set_ylim(len(runs), 0)
    axes.set_axis_off()
    for column, name in enumerate(names):
        axes.text(
            column + 0.5, -0.3, shortened(visible(name), 14), rotation=40, color=MUTED, ha="left",
            va="bottom", rotation_mode="anchor",
        )  # fmt: skip
    for row, run in enumerate(runs):
        write_beside(axes, row + 0.5, shortened(visible(run.label), int(_NAME / LETTER)))
        by_name = {family.name: family.accuracy for family in run.families}
        for column, name in enumerate(names):
            if accuracy := by_name.get(name):
                heat = level(accuracy.value)
                text = f"{accuracy.value:.2f}"
                _fill_cell(
                    axes, (column, row), FILLS[heat], gap=(0.02, 0.04), text=text, ink=ink_on(heat)
                )
            else:
                _fill_cell(axes, (column, row), ABSENT, gap=(0.02, 0.04))


def pairwise(comparison: Comparison) -> Plot:
    """Row minus column, below the diagonal; for at least two runs."""
    labels = [run.label for run in comparison.runs]
    cell, row = (50, 28) if len(labels) <= MOST_NUMBERS else (14, 14)
    panel = Panel(
        ACCURACY.name,
        "Accuracy, row minus column",
        f"Difference in accuracy between every two of {len(labels)} runs, coloured by verdict",
        row * len(labels) + 40,
        partial(_draw_pairs, labels=labels, comparison=comparison),
        width=_PAIR_NAME + cell * len(labels) + 12,
        margins=Margins(left=_PAIR_NAME, right=12, top=32, bottom=8),
    )
    rows = [
        (labels[pair.first], labels[pair.second], *cells(pair.accuracy, _PAIRS[2:]))
        for pair in comparison.matrix
    ]
    return Plot("pairwise", "Every two runs", _PAIRS, rows, [panel] if len(labels) > 1 else [])


def _draw_pairs(axes: "Axes", *, labels: Sequence[str], comparison: Comparison) -> None:
    numbers = len(labels) <= MOST_NUMBERS
    axes.set_xlim(0, len(labels))
    axes.set_ylim(len(labels), 0)
    axes.set_axis_off()
    for place, label in enumerate(labels):
        name = shortened(visible(label), int(_PAIR_NAME / LETTER) - 3)
        write_beside(axes, place + 0.5, f"{name}  {place + 1}")
        if numbers or place % 5 == 4 or place == 0:
            axes.text(place + 0.5, -0.2, str(place + 1), ha="center", va="bottom", color=MUTED)
    for pair in comparison.matrix:
        difference = pair.accuracy
        told = difference is not None and difference.verdict in ("better", "worse")
        color = VERDICTS[str(difference.verdict)] if difference and told else BAND
        text = signed(difference.delta) if numbers and difference is not None else ""
        ink = PAPER if told else INK
        _fill_cell(axes, (pair.first, pair.second), color, gap=(0.03, 0.03), text=text, ink=ink)


def _fill_cell(
    axes: "Axes",
    cell: tuple[int, int],
    color: str,
    *,
    gap: tuple[float, float],
    text: str = "",
    ink: str = INK,
) -> None:
    from matplotlib.patches import Rectangle

    (x, y), (across, down) = cell, gap
    corner, size = (x + across, y + down), (1 - 2 * across, 1 - 2 * down)
    axes.add_patch(Rectangle(corner, *size, color=color, linewidth=0))
    if text:
        axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", color=ink)
