"""Which families of tasks a run is good at: a heat map of accuracies."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jevexp.analysis.comparison import Comparison, Family, RunStatistics
from jevexp.analysis.plots.heat import ABSENT, fill, ink_on, level
from jevexp.analysis.plots.plot import Cell, Margins, Panel, Plot
from jevexp.analysis.plots.style import INK, MUTED, SMALL
from jevexp.analysis.text import shortened, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ("run", "label", "family", "correct", "n", "accuracy", "low", "high")
_CELL = 54
_ROW = 26
_NAME = 170
_LETTER = 6.6
# Room for the last name, which is written upwards to the right.
_SLANT = 60


def families(comparison: Comparison) -> Plot | None:
    """Runs from top to bottom, families from left to right; None where nothing was scored."""
    runs = comparison.runs
    names = family_names(runs)
    if not names:
        return None
    rows = [_row(run, family) for run in runs for family in run.families]
    panel = Panel(
        "accuracy",
        "Accuracy by family",
        f"Accuracy of {len(runs)} runs on the families {', '.join(names)}",
        _ROW * len(runs) + 100,
        _drawing(runs, names),
        width=_NAME + _CELL * len(names) + _SLANT,
        margins=Margins(left=_NAME, right=_SLANT, top=92, bottom=8),
    )
    return Plot("families", "Accuracy by family", COLUMNS, rows, [panel])


def family_names(runs: Sequence[RunStatistics]) -> list[str]:
    """The families in which any run was scored, in the order they come."""
    return list(
        dict.fromkeys(family.name for run in runs for family in run.families if family.accuracy)
    )


def _row(run: RunStatistics, family: Family) -> Sequence[Cell]:
    found = family.accuracy
    low, high = (found and found.interval) or (None, None)
    return (
        run.run, run.label, family.name, family.correct, found.n if found else 0,
        found.value if found else None, low, high,
    )  # fmt: skip


def _drawing(runs: Sequence[RunStatistics], names: Sequence[str]) -> "Callable[[Axes], None]":
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
                _draw_cell(axes, row, column, by_name.get(name))

    return draw


def _draw_cell(axes: "Axes", row: int, column: int, family: Family | None) -> None:
    from matplotlib.patches import Rectangle

    found = family.accuracy if family else None
    color = fill(level(found.value)) if found else ABSENT
    axes.add_patch(Rectangle((column + 0.02, row + 0.04), 0.96, 0.92, color=color, linewidth=0))
    if found:
        axes.text(
            column + 0.5, row + 0.5, f"{found.value:.2f}", ha="center", va="center",
            fontsize=SMALL, color=ink_on(level(found.value)),
        )  # fmt: skip
