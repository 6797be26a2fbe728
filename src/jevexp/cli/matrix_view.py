"""All runs against all, on the terminal."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jevexp.analysis.comparison import Comparison
from jevexp.analysis.statistics.verdict import Verdict

# Beyond this a terminal has no room for the columns.
_MOST_RUNS = 12
_SIGN = {
    Verdict.BETTER: ("better", "green"),
    Verdict.WORSE: ("worse", "red"),
    Verdict.EQUIVALENT: ("same", "cyan"),
    Verdict.INCONCLUSIVE: ("?", ""),
}
# What a run is to the other one, seen from the other side.
_TURNED = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}


def print_matrix(console: Console, comparison: Comparison) -> None:
    """Print the accuracy of each row minus that of each column, and what that says."""
    runs = comparison.runs
    if len(runs) > _MOST_RUNS:
        console.print(
            Text(
                f"{len(comparison.matrix)} pairs of runs are too many for a terminal; "
                "--json and --csv have all of them\n"
            )
        )
        return
    table = Table(
        box=box.SIMPLE_HEAD,
        title="accuracy of the row minus that of the column",
        title_justify="left",
    )
    table.add_column("run", overflow="fold")
    for place in range(len(runs)):
        table.add_column(str(place), justify="right")
    cells = _cells(comparison)
    for place, run in enumerate(runs):
        row = [cells.get((place, column), Text("")) for column in range(len(runs))]
        table.add_row(Text(f"{place}  {run.label}"), *row)
    console.print(table)
    console.print(
        Text(
            f"  {comparison.tests} tests were adjusted together: all metrics against the baseline, "
            "and the accuracy of all other pairs\n"
        )
    )


def _cells(comparison: Comparison) -> dict[tuple[int, int], Text]:
    found = {}
    for cell in comparison.matrix:
        metric = cell.accuracy
        if metric is None or metric.verdict is None:
            continue
        turned = _TURNED.get(metric.verdict, metric.verdict)
        found[cell.second, cell.first] = _cell(metric.delta, metric.verdict)
        found[cell.first, cell.second] = _cell(0.0 - metric.delta, turned)
    return found


def _cell(delta: float, verdict: Verdict) -> Text:
    word, style = _SIGN[verdict]
    return Text(f"{delta:+.3f}\n{word}", style=style)
