"""The comparison of a sweep's runs as a tracker gets it: page, numbers, and a note in Markdown."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from jevexp.analysis.compare import compare
from jevexp.analysis.comparison import Comparison, PairResult, RunStatistics
from jevexp.analysis.estimates import Difference, Estimate, Options
from jevexp.analysis.metrics import ACCURACY, METRICS, with_verdicts
from jevexp.analysis.report.page import PAGE, ReportPaths, write_report
from jevexp.analysis.runs import FinishedRun, check_comparable
from jevexp.cli.choose_runs import answered, read_runs
from jevexp.core.json import dumps
from jevexp.tracking import SweepComparison
from jevexp.untrusted.writing import write_new

# MLflow keeps 8000 characters of a description, and nobody reads more.
MOST_CHARACTERS = 7500
Address = Callable[[str], str | None]


def sweep_comparison(sweep: Path) -> SweepComparison | None:
    """The comparison of a sweep's runs on disk, the first one as the baseline.

    It is computed when the first tracker needs it.

    Returns:
        None where fewer than two runs were answered.

    Raises:
        InputError: the runs cannot be compared.
    """
    directories = answered(sweep)
    if len(directories) < 2:
        return None
    runs = read_runs(directories)
    check_comparable(runs)

    @cache
    def compared() -> Comparison:
        return compare(runs, Options())

    return SweepComparison(
        sweep=sweep.resolve().name,
        name=f"comparison · {runs[0].manifest.dataset.name} · {len(runs)} runs",
        runs=directories,
        names=lambda: _names(compared(), runs),
        note=lambda addresses: comparison_note(compared(), str(sweep.resolve()), addresses.get),
        report=lambda folder: _write(compared(), runs, folder),
    )


def _names(comparison: Comparison, runs: Sequence[FinishedRun]) -> dict[str, str]:
    """What tells runs of one model apart, in their names: lists and charts show nothing else."""
    return {
        compared.run: run.manifest.titled(compared.label)
        for compared, run in zip(comparison.runs, runs, strict=True)
        if compared.label != run.manifest.model.declared.name
    }


def _write(comparison: Comparison, runs: Sequence[FinishedRun], folder: Path) -> None:
    write_report(comparison, runs, ReportPaths(folder / PAGE))
    write_new(folder / "comparison.json", dumps(comparison.plain(), indent=2).encode())


def comparison_note(comparison: Comparison, place: str, address: Address) -> str:
    """The description of a comparison.

    Args:
        comparison: of at least two runs.
        place: where the runs are.
        address: the address of a run by the name of its directory; None where there is none.
    """
    first = comparison.runs[0]
    head = (
        f"{len(comparison.runs)} runs on **{comparison.dataset}**, {first.requested} tasks; "
        f"intervals at {_level(comparison.options)}. The whole comparison is the artifact "
        "`report.html`."
    )
    tail = f"Runs: `{place}`"
    parts = [
        head,
        _bounded("### Runs", _leaderboard(comparison.runs, address), MOST_CHARACTERS // 2),
        _bounded(
            f"### Against {_link(first, address)}",
            _verdicts(comparison, address),
            MOST_CHARACTERS // 2 - len(head) - len(tail) - 200,
        ),
        tail,
    ]
    return "\n\n".join(parts) + "\n"


def _bounded(title: str, lines: Sequence[str], most: int) -> str:
    """As many lines as fit, and how many do not."""
    kept, size = [title, ""], len(title)
    for number, line in enumerate(lines):
        size += len(line) + 1
        if size > most:
            kept += ["", f"… and {len(lines) - number} more in `report.html`"]
            break
        kept.append(line)
    return "\n".join(kept)


def _leaderboard(runs: Sequence[RunStatistics], address: Address) -> list[str]:
    """The runs, the most accurate first."""
    headings = [metric.heading for metric in METRICS.values()]
    lines = _header("run", "valid", *headings, "median s", "identity")
    ranked = sorted(runs, key=lambda run: -(run.accuracy.value if run.accuracy else -1.0))
    for run in ranked:
        cells = [
            _link(run, address),
            f"{run.valid}/{run.requested}",
            *(_estimate(run.estimates[name]) for name in METRICS),
            _estimate(run.latency.median) if run.latency else "",
            (run.identity or "").replace("_", " "),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _verdicts(comparison: Comparison, address: Address) -> list[str]:
    metrics = with_verdicts()
    lines = _header("run", *(metric.heading for metric in metrics), "flips", "to know")
    for pair in comparison.pairs:
        cells = [
            _link(comparison.runs[pair.candidate], address),
            *(_verdict(pair.difference(metric), comparison.options) for metric in metrics),
            str(len(pair.flips)),
            _cell("; ".join(_to_know(pair))),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _header(*headings: str) -> list[str]:
    return [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]


def _verdict(difference: Difference | None, options: Options) -> str:
    if difference is None or difference.verdict is None:
        return ""
    within = f" within {options.margin:g}" if difference.verdict == "equivalent" else ""
    interval = difference.interval
    range_ = f" ({interval.low:+.3f} to {interval.high:+.3f})" if interval else ""
    return f"**{difference.verdict}**{within}: {difference.delta:+.3f}{range_}"


def _to_know(pair: PairResult) -> Iterator[str]:
    yield from pair.remarks
    accuracy = pair.difference(ACCURACY)
    if accuracy and accuracy.verdict == "inconclusive" and accuracy.tasks_needed:
        yield f"about {accuracy.tasks_needed} tasks are needed for {ACCURACY.heading}"


def _link(run: RunStatistics, address: Address) -> str:
    name = _cell(f"{run.label} ({run.run})" if run.label != run.run else run.label)
    there = address(run.run)
    return f"[{name}]({there})" if there else name


def _estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    if estimate.interval is None:
        return f"{estimate.value:.3f}"
    low, high = estimate.interval
    return f"{estimate.value:.3f} ({low:.3f} to {high:.3f})"


def _level(options: Options) -> str:
    return f"{100 * (1 - options.alpha):.4g} %"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
