"""A comparison on the terminal: the runs, the pairs, the matrix, and what may be concluded."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jevexp.analysis.comparison import Comparison, Estimate, PairResult
from jevexp.analysis.statistics.verdict import Verdict
from jevexp.cli.matrix_view import print_matrix
from jevexp.cli.pair_view import NAMES, STYLE, print_pair, shown_interval, shown_level
from jevexp.cli.tables import number

# More of them, one below the other, are read by nobody.
MOST_PAIRS = 6


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print the leaderboard, every candidate held against the baseline, and the matrix."""
    console.print(_leaderboard(comparison))
    for place, run in enumerate(comparison.runs):
        console.print(Text(f"  {place}  {run.path}"))
    console.print()
    if len(comparison.pairs) <= MOST_PAIRS:
        for result in comparison.pairs:
            print_pair(console, comparison, result)
    else:
        console.print(
            Text(
                f"{len(comparison.pairs)} pairs in detail: --json, --csv or --html, or compare "
                "fewer runs\n"
            )
        )
    if len(comparison.runs) > 2:
        print_matrix(console, comparison)
    for result in comparison.pairs:
        console.print(_sentence(comparison, result))


def _leaderboard(comparison: Comparison) -> Table:
    """The runs, best accuracy first."""
    level = shown_level(comparison.options)
    table = Table(
        box=box.SIMPLE_HEAD, title=f"{comparison.dataset}: {level}s", title_justify="left"
    )
    table.add_column("")
    table.add_column("run", overflow="fold")
    for heading in ("valid", "accuracy", "Brier", "ECE", "MAE", "median s", "identity"):
        table.add_column(heading, justify="right")
    ranked = sorted(
        enumerate(comparison.runs),
        key=lambda numbered: -numbered[1].accuracy.value if numbered[1].accuracy else 1.0,
    )
    for place, run in ranked:
        table.add_row(
            str(place),
            Text(run.label + (" (baseline)" if place == 0 and comparison.pairs else "")),
            f"{run.valid}/{run.requested}",
            *map(_estimate, (run.accuracy, run.brier, run.ece, run.mae)),
            _estimate(run.latency.median if run.latency else None),
            (run.identity or "").replace("_", " "),
        )
    return table


def _estimate(found: Estimate | None) -> str:
    if found is None:
        return ""
    if found.interval is None:
        return number(found.value)
    return f"{number(found.value)}\n{found.interval.low:.3f}–{found.interval.high:.3f}"


def _sentence(comparison: Comparison, result: PairResult) -> Text:
    """The verdict on accuracy in words."""
    baseline, candidate = comparison.runs[result.baseline], comparison.runs[result.candidate]
    metric = result.metric("accuracy")
    if metric is None or metric.verdict is None:
        said = Text("cannot be compared with")
    else:
        words = {
            Verdict.BETTER: "is better than",
            Verdict.WORSE: "is worse than",
            Verdict.EQUIVALENT: f"is equivalent within {comparison.options.margin:g} to",
            Verdict.INCONCLUSIVE: "cannot be told from",
        }[metric.verdict]
        said = Text(words, style=STYLE.get(metric.verdict, "yellow"))
    line = Text.assemble(("verdict  ", "bold"), candidate.label, " ", said, " ", baseline.label)
    if metric is None:
        return line
    line.append(f" in accuracy: {metric.delta:+.3f}")
    if metric.interval:
        line.append(f" ({shown_interval(metric.interval)})")
    others = [
        f"{NAMES[one.name]} {one.verdict}"
        for one in result.metrics
        if one.name != "accuracy" and one.verdict is not None
    ]
    return line.append(f"; {', '.join(others)}" if others else "")
