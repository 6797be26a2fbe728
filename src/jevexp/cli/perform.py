"""One run in this process: its progress, its tracking and its report at the end."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from jevexp.cli.additions import additions
from jevexp.cli.console import make_run_console
from jevexp.cli.end_of_run import Refused, report_run, report_run_on_disk
from jevexp.cli.paths import remove_refused
from jevexp.cli.progress import make_observer
from jevexp.cli.sweep_comparison import log_sweep_comparison
from jevexp.cli.tracked import export_options
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.run import Launch, Outcome, Plan, plan, run
from jevexp.settings import Settings
from jevexp.store import RunDirectory
from jevexp.tracking import NOTHING, NoTracker, TrackedRun, TrackingError, make_tracker

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
    """Logs complete run directories where the settings say, and knows where to look at them."""

    def __init__(self, settings: Settings, console: Console) -> None:
        self._tracker = make_tracker(settings.tracking, Path(settings.outputs))
        self._options = export_options(settings.tracking, settings.outputs)
        self._report = settings.tracking.report
        self._console = console
        self._tracked: list[TrackedRun] = []

    def __call__(self, directory: RunDirectory, tasks: Sequence[Task]) -> None:
        """Log a run; a failure is a warning that says how to log it later."""
        try:
            more = (
                additions(directory, tasks, report=self._report)
                if len(tasks) <= MOST_TASKS
                else NOTHING
            )
            if run := self._tracker.log(directory, tasks, more):
                self._tracked.append(run)
        except TrackingError as error:
            self._warn(f"not tracked: {error}; log it later with: {self._later(directory.path)}")

    def put_off(self, directory: RunDirectory) -> None:
        """Say how a run is logged later that was ended in a hurry."""
        if not isinstance(self._tracker, NoTracker):
            self._warn(f"not tracked; log it later with: {self._later(directory.path)}")

    def print_links(self) -> None:
        """Say where a browser shows the runs that were logged through this object."""
        self._print(self._tracked)

    def finish_sweep(self, sweep: Path, *, interrupted: bool) -> None:
        """Compare the runs of a sweep and say where a browser shows them, whoever logged them.

        A sweep that somebody interrupted is not compared: they do not want to wait.
        """
        compared = []
        try:
            runs = self._tracker.runs(sweep.name)
            if not interrupted and (run := log_sweep_comparison(self._tracker, sweep, runs)):
                compared.append(run)
        except TrackingError as error:
            self._warn(f"not tracked: {error}; log it later with: {self._later(sweep)}")
            return
        except InputError as error:
            self._warn(f"no comparison of the sweep: {error}")
        self._print(runs, compared)

    def _print(self, runs: Sequence[TrackedRun], compared: Sequence[TrackedRun] = ()) -> None:
        if links := self._tracker.links(runs, comparisons=compared):
            self._console.print(*map(Text, ["mlflow:", *links.lines()]), sep="\n")

    def _later(self, path: Path) -> str:
        return " ".join(["jevexp export", shlex.quote(str(path)), *self._options])

    def _warn(self, message: str) -> None:
        self._console.print(Text.assemble(("warning: ", "bold yellow"), message))
