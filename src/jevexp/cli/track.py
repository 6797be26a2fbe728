"""Tells the tracker about finished runs; its troubles are warnings and cost no evidence."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from jevexp.cli.additions import additions
from jevexp.cli.sweep_comparison import log_sweep_comparison
from jevexp.cli.tracked import export_options
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.settings import Settings
from jevexp.store import RunDirectory
from jevexp.tracking import NOTHING, NoTracker, TrackedRun, TrackingError, make_tracker

# With more, statistics at the end of a run would take longer and more memory than the run.
MOST_TASKS = 20_000


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
