"""A comparison on the terminal: the runs, the pairs, the matrix, and what may be concluded."""

from collections.abc import Mapping

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jevexp.analysis.comparison import (
    Comparison,
    Flip,
    LatencyRatio,
    PairResult,
    RunStatistics,
)
from jevexp.analysis.estimates import Difference, Estimate, Options
from jevexp.analysis.intervals import Interval
from jevexp.analysis.metrics import ACCURACY, METRICS
from jevexp.analysis.verdicts import POWER, Verdict
from jevexp.cli.tables import number

# More pairs, one below the other, are read by nobody.
MOST_PAIRS = 6
MOST_FLIPS = 10
# Beyond this a terminal has no room for the columns of the matrix.
_MOST_RUNS = 12
_STYLE = {Verdict.BETTER: "green", Verdict.WORSE: "red", Verdict.EQUIVALENT: "cyan"}
_WORD = {
    Verdict.BETTER: "better",
    Verdict.WORSE: "worse",
    Verdict.EQUIVALENT: "same",
    Verdict.INCONCLUSIVE: "?",
}
# What a run is to the other one, seen from the other side.
_TURNED = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print the leaderboard, every candidate held against the baseline, and the matrix."""
    console.print(_leaderboard(comparison))
    for place, run in enumerate(comparison.runs):
        console.print(Text(f"  {place}  {run.path}"))
    console.print()
    if len(comparison.pairs) <= MOST_PAIRS:
        for pair in comparison.pairs:
            _print_pair(console, comparison, pair)
    else:
        console.print(
            Text(
                f"{len(comparison.pairs)} pairs in detail: --json, --csv or --html, or compare "
                "fewer runs\n"
            )
        )
    if len(comparison.runs) > 2:
        _print_matrix(console, comparison)
    for pair in comparison.pairs:
        console.print(_sentence(comparison, pair))


def _leaderboard(comparison: Comparison) -> Table:
    """The runs, best accuracy first."""
    level = _level(comparison.options)
    table = Table(
        box=box.SIMPLE_HEAD, title=f"{comparison.dataset}: {level}s", title_justify="left"
    )
    table.add_column("")
    table.add_column("run", overflow="fold")
    headings = [metric.heading for metric in METRICS.values()]
    for heading in ("valid", *headings, "median s", "identity"):
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
            *(_estimate(run.estimates[name]) for name in METRICS),
            _estimate(run.latency.median if run.latency else None),
            (run.identity or "").replace("_", " "),
        )
    return table


def _estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    if estimate.interval is None:
        return number(estimate.value)
    return f"{number(estimate.value)}\n{estimate.interval.low:.3f}–{estimate.interval.high:.3f}"


def _sentence(comparison: Comparison, pair: PairResult) -> Text:
    """The verdict on accuracy in words."""
    baseline, candidate = comparison.runs[pair.baseline], comparison.runs[pair.candidate]
    difference = pair.difference(ACCURACY)
    if difference is None or difference.verdict is None:
        verdict = Text("cannot be compared with")
    else:
        words = {
            Verdict.BETTER: "is better than",
            Verdict.WORSE: "is worse than",
            Verdict.EQUIVALENT: f"is equivalent within {comparison.options.margin:g} to",
            Verdict.INCONCLUSIVE: "cannot be told from",
        }[difference.verdict]
        verdict = Text(words, style=_STYLE.get(difference.verdict, "yellow"))
    line = Text.assemble(("verdict  ", "bold"), candidate.label, " ", verdict, " ", baseline.label)
    if difference is None:
        return line
    line.append(f" in {ACCURACY.heading}: {difference.delta:+.3f}")
    if difference.interval:
        line.append(f" ({_interval(difference.interval)})")
    others = [
        f"{METRICS[other.name].heading} {other.verdict}"
        for other in pair.metrics
        if other.name != ACCURACY.name and other.verdict is not None
    ]
    return line.append(f"; {', '.join(others)}" if others else "")


def _print_pair(console: Console, comparison: Comparison, pair: PairResult) -> None:
    """Print one candidate held against the baseline."""
    baseline, candidate = comparison.runs[pair.baseline], comparison.runs[pair.candidate]
    options = comparison.options
    console.print(Text("baseline   ", style="bold").append_text(_side(baseline)))
    console.print(Text("candidate  ", style="bold").append_text(_side(candidate)))
    console.print(
        Text(
            f"both attempted {pair.paired} of {baseline.requested} tasks, "
            f"in {pair.clusters} independent groups"
        )
    )
    for remark in pair.remarks:
        console.print(Text.assemble(("  note: ", "bold yellow"), remark))
    if not pair.metrics:
        console.print(Text("  nothing to compare: no task was scored on both sides\n"))
        return
    console.print(_table(pair, options))
    for difference in pair.metrics:
        if difference.verdict is Verdict.INCONCLUSIVE:
            console.print(Text(f"  {_power(difference, options)}"))
    if pair.latency:
        console.print(Text(f"  {_latency(pair.latency, options)}"))
        for warning in pair.latency.warnings:
            console.print(Text.assemble(("  do not trust it: ", "bold yellow"), warning))
    if line := _paraphrases(baseline, candidate):
        console.print(Text(f"  {line}"))
    if pair.distance_mean is not None and pair.distance_max is not None:
        console.print(
            Text(
                f"  total variation distance: mean {pair.distance_mean:.3f}, "
                f"largest {pair.distance_max:.3f}"
            )
        )
    _print_flips(console, pair)


def _side(side: RunStatistics) -> Text:
    return Text(f"{side.label} ({side.valid} of {side.requested} valid)", style="")


def _table(pair: PairResult, options: Options) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("metric")
    table.add_column("difference", justify="right")
    table.add_column(_level(options), justify="right")
    for heading in ("tasks", "p", "Holm p"):
        table.add_column(heading, justify="right")
    table.add_column("candidate is")
    for difference in pair.metrics:
        verdict = difference.verdict
        table.add_row(
            METRICS[difference.name].heading,
            f"{difference.delta:+.3f}",
            _interval(difference.interval),
            str(difference.n),
            _p(difference.p),
            _p(difference.p_adjusted),
            Text(_words(verdict, options), style=_STYLE.get(verdict, "") if verdict else ""),
        )
    return table


def _p(value: float | None) -> str:
    return "< 0.001" if value is not None and value < 0.001 else number(value)


def _words(verdict: Verdict | None, options: Options) -> str:
    if verdict is None:
        return "(not tested)"
    within = f" within {options.margin:g}" if verdict is Verdict.EQUIVALENT else ""
    return f"{verdict}{within}"


def _level(options: Options) -> str:
    """The level of the intervals."""
    return f"{100 * (1 - options.alpha):.4g} % interval"


def _interval(interval: Interval | None) -> str:
    """An interval of a difference."""
    return f"{interval.low:+.3f} to {interval.high:+.3f}" if interval else "unknown"


def _power(difference: Difference, options: Options) -> str:
    """What these tasks could have shown, and how many more would."""
    line = f"{METRICS[difference.name].heading} is inconclusive: {difference.n} tasks "
    if difference.smallest_effect is None:
        line += "like these show no difference reliably"
    else:
        line += f"show differences from {difference.smallest_effect:.3f} on (power {POWER:.0%})"
    if difference.tasks_needed is not None:
        sought = max(abs(difference.delta), options.margin)
        line += f"; about {difference.tasks_needed} are needed to show {sought:.3f}"
    return line


def _latency(latency: LatencyRatio, options: Options) -> str:
    line = f"latency: the candidate takes {latency.ratio:.2f} times as long"
    if latency.interval:
        low, high = latency.interval
        line += f" ({_level(options)} {low:.2f} to {high:.2f}, {latency.n} tasks)"
    return line


def _paraphrases(baseline: RunStatistics, candidate: RunStatistics) -> str | None:
    """How often each side gives both wordings of a question one answer."""
    parts = []
    for name, side in (("baseline", baseline), ("candidate", candidate)):
        alike = side.paraphrases
        if alike and alike.agreement and alike.agreement.interval:
            low, high = alike.agreement.interval
            parts.append(f"{name} {alike.agree} of {alike.both_valid} ({low:.2f} to {high:.2f})")
    return f"paraphrases answered alike: {', '.join(parts)}" if parts else None


def _print_flips(console: Console, pair: PairResult) -> None:
    flips = pair.flips
    if not flips:
        console.print(Text("  no task is right on one side alone\n"))
        return
    lost = sum(flip.right == "baseline" for flip in flips)
    console.print(
        Text(f"  right on one side alone: baseline {lost}, candidate {len(flips) - lost}")
    )
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("task", "right", "baseline", "candidate"):
        table.add_column(heading, overflow="fold")
    for flip in flips[:MOST_FLIPS]:
        table.add_row(*_flip(flip))
    console.print(table)
    if len(flips) > MOST_FLIPS:
        console.print(
            Text(f"  and {len(flips) - MOST_FLIPS} more; --json and --csv have all of them\n")
        )


def _flip(flip: Flip) -> list[Text]:
    cells = [flip.task_id, flip.right]
    return [Text(cell) for cell in [*cells, _shares(flip.baseline), _shares(flip.candidate)]]


def _shares(probs: Mapping[str, float] | None) -> str:
    if probs is None:
        return "no distribution"
    ranked = sorted(probs.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{label} {share:.2f}" for label, share in ranked)


def _print_matrix(console: Console, comparison: Comparison) -> None:
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
    cells = {}
    for cell in comparison.matrix:
        difference = cell.accuracy
        if difference is None or difference.verdict is None:
            continue
        turned = _TURNED.get(difference.verdict, difference.verdict)
        cells[cell.second, cell.first] = _cell(difference.delta, difference.verdict)
        cells[cell.first, cell.second] = _cell(0.0 - difference.delta, turned)
    return cells


def _cell(delta: float, verdict: Verdict) -> Text:
    return Text(f"{delta:+.3f}\n{_WORD[verdict]}", style=_STYLE.get(verdict, ""))
