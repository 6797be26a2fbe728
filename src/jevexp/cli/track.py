"""Tells the tracker about finished runs; its troubles are warnings and cost no evidence."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from jevexp.domain.task import Task
from jevexp.evidence import RunDirectory
from jevexp.settings import Settings
from jevexp.tracking import TrackedRun, TrackingError, make_tracker


class Tracking:
    """Logs complete run directories where the settings say, and knows where to look at them."""

    def __init__(self, settings: Settings, console: Console) -> None:
        self._tracker = make_tracker(settings.tracking, Path(settings.outputs))
        self._console = console
        self._tracked: list[TrackedRun] = []

    def __call__(self, directory: RunDirectory, tasks: Sequence[Task]) -> None:
        """Log a run; a failure is a warning that says how to log it later."""
        try:
            if run := self._tracker.log(directory, tasks):
                self._tracked.append(run)
        except TrackingError as error:
            later = f"jevexp export {shlex.quote(str(directory.path))}"
            self._warn(f"not tracked: {error}; log it later with: {later}")

    def print_links(self) -> None:
        """Say where a browser shows the runs that were logged through this object."""
        self._print(self._tracked)

    def print_sweep_links(self, sweep: str) -> None:
        """Say where a browser shows the runs of a sweep, whichever process logged them."""
        try:
            self._print(self._tracker.runs(sweep))
        except TrackingError as error:
            self._warn(str(error))

    def _print(self, runs: Sequence[TrackedRun]) -> None:
        if links := self._tracker.links(runs):
            self._console.print(*map(Text, ["mlflow:", *links.lines()]), sep="\n")

    def _warn(self, message: str) -> None:
        self._console.print(Text.assemble(("warning: ", "bold yellow"), message))
