"""`jevexp compare RUN RUN...`: which of them is better, and how sure that is."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from jevexp.analysis.compare import compare
from jevexp.analysis.comparison import Comparison, LatencyRatio, PairResult
from jevexp.analysis.estimates import Difference, Estimate, Options
from jevexp.analysis.intervals import Interval
from jevexp.analysis.metrics import ACCURACY, METRICS
from jevexp.analysis.report.page import write_report
from jevexp.analysis.tables import tables, write_tables
from jevexp.analysis.verdicts import POWER, Verdict
from jevexp.cli.arguments import add_page, add_runs, options_of, read_chosen, report_paths
from jevexp.cli.console import make_console, make_parser, make_table, print_json
from jevexp.cli.run_view import number, ranked
from jevexp.errors import InputError
from jevexp.store.directory import MANIFEST
from jevexp.untrusted.files import RefusedPath
from jevexp.untrusted.writing import Folder

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
# The same difference, seen from the other run.
_REVERSED = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}


def main(argv: Sequence[str]) -> int:
    """Print the comparison; 0, whatever it says.

    Raises InputError: a path is no run, the runs cannot be compared, or the page or a table is in
    the way of another file.
    """
    parser = make_parser(
        "compare",
        "Compare finished runs with a baseline, the first one unless --baseline names another: "
        "differences with intervals, and what may be concluded.",
    )
    add_runs(parser)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    add_page(parser)
    parser.add_argument(
        "--html",
        nargs="?",
        type=Path,
        const=Path(),
        metavar="PATH",
        help="also write a page, as PATH or into the folder PATH (default: report.html), with its "
        "plots beside it",
    )
    parser.add_argument(
        "--csv",
        nargs="?",
        type=Path,
        const=Path("comparison"),
        metavar="FOLDER",
        help="also write tables as CSV files into FOLDER (default: comparison)",
    )
    arguments = parser.parse_args(argv)
    paths = folder = None
    if arguments.html is not None:
        paths = report_paths(arguments.html, option="--html", force=arguments.force)
    if arguments.csv is not None:
        folder = _table_folder(arguments.csv, force=arguments.force)
    runs = read_chosen(arguments)
    comparison = compare(runs, options_of(arguments))
    if arguments.json:
        print_json(comparison.plain())
    else:
        print_comparison(make_console(), comparison)
    # With --json, standard output is the numbers alone.
    console = make_console(stderr=arguments.json)
    if paths:
        write_report(comparison, runs, paths)
        console.print(Text(f"page: {paths.page}"))
    if folder:
        write_tables(comparison, folder)
        console.print(Text(f"tables: {folder}"))
    return 0


def _table_folder(path: Path, *, force: bool) -> Path:
    """The tables' folder, checked first and made if need be; raises InputError."""
    if (path / MANIFEST).is_file():
        raise InputError(
            f"--csv {path}: is a run; put --csv last, or write --csv=PATH for another folder"
        )
    for table in () if force else tables():
        if (path / table.name).exists():
            raise InputError(
                f"{path / table.name}: exists; give another folder, or --force to replace it"
            )
    try:
        # A folder that a person names may be a link of theirs.
        with Folder.named(path) as folder:
            return folder.path
    except RefusedPath as error:
        raise InputError(f"--csv {path}: {error.filename} {error.strerror}") from error
    except OSError as error:
        raise InputError(f"--csv {path}: cannot be made: {error.strerror}") from error


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print the leaderboard, every candidate beside the baseline, the matrix and the verdicts."""
    for part in _parts(comparison):
        console.print(Text(part) if isinstance(part, str) else part)


def _parts(comparison: Comparison) -> Iterator[RenderableType]:
    yield _leaderboard(comparison)
    for index, run in enumerate(comparison.runs):
        yield f"  {index}  {run.path}"
    yield ""
    if len(comparison.pairs) <= MOST_PAIRS:
        for pair in comparison.pairs:
            yield from _pair(comparison, pair)
    else:
        yield (
            f"{len(comparison.pairs)} pairs in detail: --json, --csv or --html, or compare "
            "fewer runs\n"
        )
    if len(comparison.runs) > 2:
        yield from _matrix(comparison)
    for pair in comparison.pairs:
        yield _sentence(comparison, pair)


def _leaderboard(comparison: Comparison) -> Table:
    """The runs, best accuracy first."""
    headings = [f">{metric.heading}" for metric in METRICS.values()]
    table = make_table(
        *("", "run", ">valid", *headings, ">median s", ">identity"),
        title=f"{comparison.dataset}: {_level(comparison.options)}s",
    )
    for index, run in ranked(comparison.runs):
        table.add_row(
            str(index),
            Text(run.label + (" (baseline)" if index == 0 and comparison.pairs else "")),
            f"{run.valid}/{run.requested}",
            *(_estimate(run.estimates[name]) for name in METRICS),
            _estimate(run.latency.median if run.latency else None),
            (run.identity or "").replace("_", " "),
        )
    return table


def _estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    interval = estimate.interval
    range_ = f"\n{interval.low:.3f}–{interval.high:.3f}" if interval else ""
    return f"{estimate.value:.3f}{range_}"


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


def _pair(comparison: Comparison, pair: PairResult) -> Iterator[RenderableType]:
    """One candidate beside the baseline."""
    options = comparison.options
    sides = {
        "baseline": comparison.runs[pair.baseline],
        "candidate": comparison.runs[pair.candidate],
    }
    for name, side in sides.items():
        counts = f"{side.label} ({side.valid} of {side.requested} valid)"
        yield Text.assemble((f"{name:<11}", "bold"), counts)
    yield (
        f"both attempted {pair.paired} of {sides['baseline'].requested} tasks, "
        f"in {pair.clusters} independent groups"
    )
    for remark in pair.remarks:
        yield Text.assemble(("  note: ", "bold yellow"), remark)
    if not pair.metrics:
        yield "  nothing to compare: no task was scored on both sides\n"
        return
    yield _metrics(pair, options)
    for difference in pair.metrics:
        if difference.verdict is Verdict.INCONCLUSIVE:
            yield f"  {_power(difference, options)}"
    if pair.latency:
        yield _latency(pair.latency, options)
        for warning in pair.latency.warnings:
            yield Text.assemble(("  do not trust it: ", "bold yellow"), warning)
    alike = []
    for name, side in sides.items():
        pairs = side.paraphrases
        if pairs and pairs.agreement and pairs.agreement.interval:
            low, high = pairs.agreement.interval
            alike.append(f"{name} {pairs.agree} of {pairs.both_valid} ({low:.2f} to {high:.2f})")
    if alike:
        yield f"  paraphrases answered alike: {', '.join(alike)}"
    if pair.distance_mean is not None and pair.distance_max is not None:
        yield (
            f"  total variation distance: mean {pair.distance_mean:.3f}, "
            f"largest {pair.distance_max:.3f}"
        )
    yield from _flips(pair)


def _metrics(pair: PairResult, options: Options) -> Table:
    table = make_table(
        *("metric", ">difference", f">{_level(options)}", ">tasks", ">p", ">Holm p", "candidate is")
    )
    for difference in pair.metrics:
        verdict = difference.verdict
        within = f" within {options.margin:g}" if verdict is Verdict.EQUIVALENT else ""
        table.add_row(
            METRICS[difference.name].heading,
            f"{difference.delta:+.3f}",
            _interval(difference.interval),
            str(difference.n),
            _p(difference.p),
            _p(difference.p_adjusted),
            Text(f"{verdict}{within}", style=_STYLE.get(verdict, ""))
            if verdict
            else "(not tested)",
        )
    return table


def _p(value: float | None) -> str:
    return "< 0.001" if value is not None and value < 0.001 else number(value)


def _level(options: Options) -> str:
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
    line = f"  latency: the candidate takes {latency.ratio:.2f} times as long"
    if latency.interval:
        low, high = latency.interval
        line += f" ({_level(options)} {low:.2f} to {high:.2f}, {latency.n} tasks)"
    return line


def _flips(pair: PairResult) -> Iterator[RenderableType]:
    flips = pair.flips
    if not flips:
        yield "  no task is right on one side alone\n"
        return
    lost = sum(flip.right == "baseline" for flip in flips)
    yield f"  right on one side alone: baseline {lost}, candidate {len(flips) - lost}"
    table = make_table("task", "right", "baseline", "candidate")
    for flip in flips[:MOST_FLIPS]:
        cells = (flip.task_id, flip.right, _shares(flip.baseline), _shares(flip.candidate))
        table.add_row(*map(Text, cells))
    yield table
    if len(flips) > MOST_FLIPS:
        yield f"  and {len(flips) - MOST_FLIPS} more; --json and --csv have all of them\n"


def _shares(probs: Mapping[str, float] | None) -> str:
    if probs is None:
        return "no distribution"
    by_share = sorted(probs.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{label} {share:.2f}" for label, share in by_share)


def _matrix(comparison: Comparison) -> Iterator[RenderableType]:
    """The accuracy of each row minus that of each column, and what that says."""
    runs = comparison.runs
    if len(runs) > _MOST_RUNS:
        yield (
            f"{len(comparison.matrix)} pairs of runs are too many for a terminal; "
            "--json and --csv have all of them\n"
        )
        return
    cells = {}
    for pair in comparison.matrix:
        if (difference := pair.accuracy) is None or (verdict := difference.verdict) is None:
            continue
        cells[pair.second, pair.first] = _cell(difference.delta, verdict)
        cells[pair.first, pair.second] = _cell(
            0.0 - difference.delta, _REVERSED.get(verdict, verdict)
        )
    title = "accuracy of the row minus that of the column"
    table = make_table("run", *(f">{column}" for column in range(len(runs))), title=title)
    for row, run in enumerate(runs):
        row_cells = (cells.get((row, column), "") for column in range(len(runs)))
        table.add_row(Text(f"{row}  {run.label}"), *row_cells)
    yield table
    yield (
        f"  {comparison.tests} tests were adjusted together: all metrics against the baseline, "
        "and the accuracy of all other pairs\n"
    )


def _cell(delta: float, verdict: Verdict) -> Text:
    return Text(f"{delta:+.3f}\n{_WORD[verdict]}", style=_STYLE.get(verdict, ""))
