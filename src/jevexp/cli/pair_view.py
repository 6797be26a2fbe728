"""One candidate held against the baseline, on the terminal."""

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
from jevexp.analysis.metric import POWER, Metric, Options
from jevexp.analysis.statistics.interval import Interval
from jevexp.analysis.statistics.verdict import Verdict
from jevexp.cli.tables import number

MOST_FLIPS = 10
NAMES = {"accuracy": "accuracy", "brier": "Brier", "ece": "ECE", "mae": "MAE"}
STYLE = {Verdict.BETTER: "green", Verdict.WORSE: "red", Verdict.EQUIVALENT: "cyan"}


def print_pair(console: Console, comparison: Comparison, result: PairResult) -> None:
    """Print one candidate held against the baseline."""
    baseline, candidate = comparison.runs[result.baseline], comparison.runs[result.candidate]
    options = comparison.options
    console.print(Text("baseline   ", style="bold").append_text(_side(baseline)))
    console.print(Text("candidate  ", style="bold").append_text(_side(candidate)))
    console.print(
        Text(
            f"both attempted {result.paired} of {baseline.requested} tasks, "
            f"in {result.clusters} independent groups"
        )
    )
    for remark in result.remarks:
        console.print(Text.assemble(("  note: ", "bold yellow"), remark))
    if not result.metrics:
        console.print(Text("  nothing to compare: no task was scored on both sides\n"))
        return
    console.print(_table(result, options))
    for metric in result.metrics:
        if metric.verdict is Verdict.INCONCLUSIVE:
            console.print(Text(f"  {_power(metric, options)}"))
    if result.latency:
        console.print(Text(f"  {_latency(result.latency, options)}"))
        for warning in result.latency.warnings:
            console.print(Text.assemble(("  do not trust it: ", "bold yellow"), warning))
    if line := _paraphrases(baseline, candidate):
        console.print(Text(f"  {line}"))
    if result.distance_mean is not None and result.distance_max is not None:
        console.print(
            Text(
                f"  total variation distance: mean {result.distance_mean:.3f}, "
                f"largest {result.distance_max:.3f}"
            )
        )
    _print_flips(console, result)


def _side(side: RunStatistics) -> Text:
    return Text(f"{side.label} ({side.valid} of {side.requested} valid)", style="")


def _table(result: PairResult, options: Options) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("metric")
    table.add_column("difference", justify="right")
    table.add_column(shown_level(options), justify="right")
    for heading in ("tasks", "p", "Holm p"):
        table.add_column(heading, justify="right")
    table.add_column("candidate is")
    for metric in result.metrics:
        verdict = metric.verdict
        table.add_row(
            NAMES[metric.name],
            f"{metric.delta:+.3f}",
            shown_interval(metric.interval),
            str(metric.n),
            _p(metric.p),
            _p(metric.p_adjusted),
            Text(_words(verdict, options), style=STYLE.get(verdict, "") if verdict else ""),
        )
    return table


def _p(value: float | None) -> str:
    return "< 0.001" if value is not None and value < 0.001 else number(value)


def _words(verdict: Verdict | None, options: Options) -> str:
    if verdict is None:
        return "(not tested)"
    within = f" within {options.margin:g}" if verdict is Verdict.EQUIVALENT else ""
    return f"{verdict}{within}"


def shown_level(options: Options) -> str:
    """The level of the intervals."""
    return f"{100 * (1 - options.alpha):.4g} % interval"


def shown_interval(interval: Interval | None) -> str:
    """An interval of a difference."""
    return f"{interval.low:+.3f} to {interval.high:+.3f}" if interval else "unknown"


def _power(metric: Metric, options: Options) -> str:
    """What these tasks could have shown, and how many more would."""
    line = f"{NAMES[metric.name]} is inconclusive: {metric.n} tasks "
    if metric.smallest_effect is None:
        line += "like these show no difference reliably"
    else:
        line += f"show differences from {metric.smallest_effect:.3f} on (power {POWER:.0%})"
    if metric.tasks_needed is not None:
        sought = max(abs(metric.delta), options.margin)
        line += f"; about {metric.tasks_needed} are needed to show {sought:.3f}"
    return line


def _latency(latency: LatencyRatio, options: Options) -> str:
    line = f"latency: the candidate takes {latency.ratio:.2f} times as long"
    if latency.interval:
        low, high = latency.interval
        line += f" ({shown_level(options)} {low:.2f} to {high:.2f}, {latency.n} tasks)"
    return line


def _paraphrases(baseline: RunStatistics, candidate: RunStatistics) -> str | None:
    """How often each side gives both wordings of a question one answer."""
    parts = []
    for name, side in (("baseline", baseline), ("candidate", candidate)):
        found = side.paraphrases
        if found and found.agreement and found.agreement.interval:
            low, high = found.agreement.interval
            parts.append(f"{name} {found.agree} of {found.both_valid} ({low:.2f} to {high:.2f})")
    return f"paraphrases answered alike: {', '.join(parts)}" if parts else None


def _print_flips(console: Console, result: PairResult) -> None:
    flips = result.flips
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
