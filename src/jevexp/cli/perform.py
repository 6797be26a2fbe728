"""One run in this process: its progress, its tracking and its report at the end."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from jevexp.cli.additions import run_report
from jevexp.cli.console import make_run_console
from jevexp.cli.end_of_run import Refused, report_run, report_run_on_disk
from jevexp.cli.paths import remove_refused
from jevexp.cli.progress import make_observer
from jevexp.cli.sweep_comparison import sweep_comparison
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.run.planning import Launch, Plan, plan
from jevexp.run.running import Outcome, run
from jevexp.settings import Settings
from jevexp.store import RunDirectory
from jevexp.tracking import NO_REPORT, TrackedRun, TrackingError, make_trackers
from jevexp.untrusted.addresses import redacted

# With more, statistics at the end of a run would take longer and more memory than the run.
MOST_TASKS = 20_000

console = make_run_console()


def perform(
    planned: Plan, launch: Launch, tracking: "Tracking", *, number: int | None
) -> Outcome | None:
    """Run a plan.

    Args:
        planned: what was checked.
        launch: where the run goes.
        tracking: hears of it.
        number: which run of a sweep it is, from 0.

    Returns:
        How it ended; None where it could not even say that in its directory, and the reason was
        printed.
    """
    observer = make_observer(console, number=number)
    try:
        outcome = run(planned, launch, observer, tracking)
    except InputError as error:
        # Somebody else took the directory since the command line was checked.
        console.print(f"{launch.directory.name}: {error}", markup=False)
        return None
    except OSError as error:
        # The disk is full or gone: even the last manifest could not be written.
        kept = "what was written until then is kept" if launch.directory.exists() else "it is gone"
        reason = f"{error.strerror}; {kept}"
        console.print(f"{launch.directory}: {reason}", markup=False)
        return None
    if outcome.signal and not outcome.tracked:
        tracking.put_off(outcome.directory)
    return outcome


def perform_member(settings: Settings, launch: Launch, *, number: int) -> None:
    """Plan and run one of a sweep's runs; the launching process reads its directory.

    Raises:
        Interrupted: a signal arrived; the one way to keep a sweep from going on.
    """
    try:
        member = plan(settings)
    except InputError as error:
        # A file has changed since the command line was checked.
        console.print(f"{launch.directory.name}: {error}", markup=False)
        return
    outcome = perform(member, launch, tracking_of(settings), number=number)
    if outcome and outcome.signal:
        raise outcome.signal


def perform_single(planned: Plan, launch: Launch, made: Sequence[Path]) -> int:
    """Run a plan that is no part of a sweep and print what came of it; the exit status.

    Args:
        planned: what was checked.
        launch: where the run goes.
        made: the directory and those of its parents that were made for it, innermost first.

    Raises:
        InputError: the run was refused; what was made for it is gone again.
    """
    tracking = tracking_of(planned.settings)
    # The manifest and the tracker name places that hold wherever somebody reads them.
    lasting = replace(launch, directory=launch.directory.absolute())
    outcome = perform(planned, lasting, tracking, number=None)
    if outcome is None:
        return report_run_on_disk(console, launch.directory)
    directory = RunDirectory(launch.directory)
    try:
        status = report_run(console, directory, outcome.manifest, outcome.summary)
    except Refused:
        remove_refused(made)
        raise
    tracking.print_links()
    return status


def tracking_of(settings: Settings) -> "Tracking":
    """Where runs with these settings are logged."""
    return Tracking(settings, console)


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
            self._warn(f"{name}: not tracked{self._later(name, directory.path)}")

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
        self, name: str, runs: Sequence[TrackedRun], compared: Sequence[TrackedRun] = ()
    ) -> None:
        if lines := self._trackers[name].addresses(runs, compared):
            self._console.print(*map(Text, [f"{name}:", *lines]), sep="\n")

    @contextmanager
    def _warning(self, name: str, path: Path) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001  a tracker may raise anything
            self._warn(f"{name}: not tracked: {_cause(error)}{self._later(name, path)}")

    def _later(self, name: str, path: Path) -> str:
        command = self._trackers[name].export_command(path)
        return f"; log it later with: {command}" if command else ""

    def _warn(self, message: str) -> None:
        self._console.print(Text.assemble(("warning: ", "bold yellow"), message))


def _cause(error: Exception) -> str:
    """Why a tracker failed, in one line."""
    if isinstance(error, TrackingError):
        return str(error)
    return redacted(f"{type(error).__name__}: {error}".strip().splitlines()[0])
