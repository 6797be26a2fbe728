"""Logging runs and sweeps: a run's intervals and page, a sweep's comparison, links to both."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.text import Text

from jevexp.analysis.compare import compare, describe
from jevexp.analysis.comparison import Comparison, PairResult, RunStatistics
from jevexp.analysis.estimates import Difference, Estimate, Options
from jevexp.analysis.metrics import ACCURACY, METRICS, with_verdicts
from jevexp.analysis.report.page import PAGE, ReportPaths, write_report
from jevexp.analysis.runs import FinishedRun, check_comparable, read_run
from jevexp.cli.arguments import answered, read_runs
from jevexp.cli.run_view import ranked
from jevexp.core.json import dumps
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.settings import Settings
from jevexp.store import RunDirectory
from jevexp.tracking import (
    NO_REPORT,
    Intervals,
    RunReport,
    SweepComparison,
    TrackedRun,
    TrackingError,
    make_trackers,
)
from jevexp.untrusted.addresses import redacted
from jevexp.untrusted.writing import write_new

# With more, statistics at the end of a run would take longer and more memory than the run.
MOST_TASKS = 20_000
# MLflow keeps 8000 characters of a description, and nobody reads more.
MOST_CHARACTERS = 7500
Address = Callable[[str], str | None]


class Tracking:
    """Tells every configured tracker of complete run directories, and where to look at them.

    A tracker that fails costs neither the run nor what the other trackers get: it is a warning.
    """

    def __init__(self, settings: Settings, console: Console) -> None:
        self._trackers = make_trackers(settings.tracking, Path(settings.outputs))
        self._console = console
        self._tracked: dict[str, list[TrackedRun]] = {name: [] for name in self._trackers}

    def __call__(self, directory: RunDirectory, tasks: Sequence[Task]) -> None:
        """Log a run."""
        report = run_report(directory, tasks) if len(tasks) <= MOST_TASKS else NO_REPORT
        for name, tracker in self._trackers.items():
            with self._warning(name, directory.path):
                self._tracked[name].append(tracker.log(directory, tasks, report))

    def put_off(self, directory: RunDirectory) -> None:
        """Say how a run is logged later that was ended in a hurry."""
        for name in self._trackers:
            self._warn_not_tracked(name, directory.path)

    def print_links(self) -> None:
        """Say where a browser shows the runs that were logged through this object."""
        for name, runs in self._tracked.items():
            self._print(name, runs)

    def finish_sweep(self, sweep: Path, *, interrupted: bool) -> None:
        """Compare the runs of a sweep and say where a browser shows them, whoever logged them.

        A sweep that somebody interrupted is not compared: they do not want to wait.
        """
        comparison = None
        try:
            if self._trackers and not interrupted:
                comparison = sweep_comparison(sweep)
        except InputError as error:
            self._warn(f"no comparison of the sweep: {error}")
        for name, tracker in self._trackers.items():
            with self._warning(name, sweep):
                runs = tracker.runs(sweep.name)
                compared = comparison and runs and tracker.log_comparison(comparison)
                self._print(name, runs, [compared] if compared else [])

    def _print(
        self, name: str, runs: Sequence[TrackedRun], comparisons: Sequence[TrackedRun] = ()
    ) -> None:
        if lines := self._trackers[name].addresses(runs, comparisons):
            self._console.print(*map(Text, [f"{name}:", *lines]), sep="\n")

    @contextmanager
    def _warning(self, name: str, path: Path) -> Iterator[None]:
        try:
            yield
        except TrackingError as error:
            self._warn_not_tracked(name, path, f": {error}")
        except Exception as error:  # noqa: BLE001  a tracker may raise anything
            cause = f"{type(error).__name__}: {error}".strip().splitlines()[0]
            self._warn_not_tracked(name, path, f": {redacted(cause)}")

    def _warn_not_tracked(self, name: str, path: Path, reason: str = "") -> None:
        command = self._trackers[name].export_command(path)
        later = f"; log it later with: {command}" if command else ""
        self._warn(f"{name}: not tracked{reason}{later}")

    def _warn(self, message: str) -> None:
        self._console.print(Text.assemble(("warning: ", "bold yellow"), message))


def run_report(directory: RunDirectory, tasks: Sequence[Task] | None) -> RunReport:
    """What can be computed of a run; computed once for all trackers, and only if one needs it.

    Args:
        directory: the finished run.
        tasks: those that were planned; None where they cannot be had.
    """

    @cache
    def described() -> tuple[FinishedRun, Comparison] | None:
        try:
            run = read_run(directory, lambda _: tasks)
        except InputError:
            # Nothing was asked, or the answers cannot be read: there are no numbers.
            return None
        return run, describe(run, Options())

    def intervals() -> Intervals:
        if (run_and_comparison := described()) is None:
            return {}
        run = run_and_comparison[1].runs[0]
        estimates = run.estimates | {"p50_s": run.latency and run.latency.median}
        return {
            name: (estimate.interval.low, estimate.interval.high)
            for name, estimate in estimates.items()
            if estimate and estimate.interval
        }

    def write(folder: Path) -> None:
        if run_and_comparison := described():
            run, comparison = run_and_comparison
            write_report(comparison, [run], ReportPaths(folder / PAGE))

    return RunReport(intervals, write)


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

    def names() -> dict[str, str]:
        # Lists and charts show nothing but a run's name, so it has to tell runs of one model apart.
        return {
            statistics.run: run.manifest.titled(statistics.label)
            for statistics, run in zip(compared().runs, runs, strict=True)
            if statistics.label != run.manifest.model.declared.name
        }

    def write(folder: Path) -> None:
        write_report(compared(), runs, ReportPaths(folder / PAGE))
        write_new(folder / "comparison.json", dumps(compared().plain(), indent=2).encode())

    return SweepComparison(
        sweep=sweep.resolve().name,
        name=f"comparison · {runs[0].manifest.dataset.name} · {len(runs)} runs",
        runs=directories,
        names=names,
        note=lambda addresses: comparison_note(compared(), str(sweep.resolve()), addresses.get),
        report=write,
    )


def comparison_note(comparison: Comparison, place: str, address: Address) -> str:
    """The description of a comparison, in Markdown.

    Args:
        comparison: of at least two runs.
        place: where the runs are.
        address: the address of a run by the name of its directory; None where there is none.
    """
    first = comparison.runs[0]
    head = (
        f"{len(comparison.runs)} runs on **{comparison.dataset}**, {first.requested} tasks; "
        f"intervals at {100 * (1 - comparison.options.alpha):.4g} %. The whole comparison is the "
        "artifact `report.html`."
    )
    tail = f"Runs: `{place}`"
    rest = MOST_CHARACTERS // 2 - len(head) - len(tail) - 200
    parts = [
        head,
        _bounded("### Runs", _leaderboard(comparison.runs, address), MOST_CHARACTERS // 2),
        _bounded(f"### Against {_link(first, address)}", _verdicts(comparison, address), rest),
        tail,
    ]
    return "\n\n".join(parts) + "\n"


def _bounded(title: str, lines: Sequence[str], most: int) -> str:
    """As many lines as fit, and how many do not."""
    kept, size = [title, ""], len(title)
    for index, line in enumerate(lines):
        size += len(line) + 1
        if size > most:
            kept += ["", f"… and {len(lines) - index} more in `report.html`"]
            break
        kept.append(line)
    return "\n".join(kept)


def _markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(cells)} |" for cells in (headings, *rows)]
    return [lines[0], "|---" * len(headings) + "|", *lines[1:]]


def _leaderboard(runs: Sequence[RunStatistics], address: Address) -> list[str]:
    """The runs, the most accurate first."""
    metrics = [metric.heading for metric in METRICS.values()]
    rows = [
        (
            _link(run, address),
            f"{run.valid}/{run.requested}",
            *(_estimate(run.estimates[name]) for name in METRICS),
            _estimate(run.latency.median if run.latency else None),
            (run.identity or "").replace("_", " "),
        )
        for _, run in ranked(runs)
    ]
    return _markdown_table(["run", "valid", *metrics, "median s", "identity"], rows)


def _verdicts(comparison: Comparison, address: Address) -> list[str]:
    metrics = with_verdicts()
    rows = [
        (
            _link(comparison.runs[pair.candidate], address),
            *(_verdict(pair.difference(metric), comparison.options) for metric in metrics),
            str(len(pair.flips)),
            _cell("; ".join(_to_know(pair))),
        )
        for pair in comparison.pairs
    ]
    headings = [metric.heading for metric in metrics]
    return _markdown_table(["run", *headings, "flips", "to know"], rows)


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
    url = address(run.run)
    return f"[{name}]({url})" if url else name


def _estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    interval = estimate.interval
    range_ = f" ({interval.low:.3f} to {interval.high:.3f})" if interval else ""
    return f"{estimate.value:.3f}{range_}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
