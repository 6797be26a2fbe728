"""One run in this process: its new directory, its progress, its tracking, its report at the end."""

import math
import os
import shutil
import sysconfig
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

import jevexp
from jevexp.cli.console import make_run_console
from jevexp.cli.run_view import Refused, report_run, report_run_on_disk
from jevexp.cli.tracking import Tracking
from jevexp.core.record import Record
from jevexp.errors import InputError
from jevexp.run.planning import Launch, Plan, plan
from jevexp.run.running import Observer, Outcome, run
from jevexp.settings import Settings
from jevexp.store import RunDirectory
from jevexp.store.manifest import concurrency_mark
from jevexp.untrusted.writing import make_folder, make_folders

_PLAIN_LINES = 8
_PLAIN_SECONDS = 30.0
# Redrawing costs more than a task that is answered at once.
_LIVE_SECONDS = 0.1
_BUCKETS = 1000
_SHORTEST_S = 1e-6
_STDERR = 2
_STOPPING = b"\ninterrupted: requests under way are finished first; Ctrl-C again ends at once\n"

console = make_run_console()


def check_paths(directory: Path, settings: Settings) -> None:
    """Check the output directory and the ledger before anything is made.

    Raises InputError: the directory exists, or a path lies inside the installed packages.
    """
    if directory.exists():
        raise InputError(f"{directory}: exists already; every run needs a fresh directory")
    _check_outside_packages("the output directory", directory)
    if settings.caps.ledger is None:
        return
    ledger = Path(settings.caps.ledger)
    _check_outside_packages("caps.ledger", ledger)
    if ledger.is_dir():
        raise InputError(f"caps.ledger: {ledger} is a folder; give a file")
    if ledger.resolve().is_relative_to(directory.resolve()):
        raise InputError(
            f"caps.ledger: {ledger} lies inside the new run; leave it null, and the run makes "
            "a ledger of its own"
        )


def _check_outside_packages(name: str, path: Path) -> None:
    package = Path(jevexp.__file__).parent
    for root in {package, *(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib"))}:
        if path.resolve().is_relative_to(root.resolve()):
            raise InputError(f"{name}: {path} lies inside the installed packages; choose another")


def make_directory(directory: Path) -> list[Path]:
    """Make the output directory, which must be new.

    Returns:
        The directory and those of its parents that had to be made, innermost first.

    Raises:
        InputError: it cannot be made, or somebody else made it meanwhile.
    """
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    try:
        make_folders(directory.parent)
        make_folder(directory)
    except FileExistsError as error:
        raise InputError(f"{directory}: exists already; every run needs a fresh one") from error
    except OSError as error:
        raise InputError(f"{directory}: cannot be made: {error.strerror}") from error
    return missing


def perform_single(planned: Plan, launch: Launch, new_folders: Sequence[Path]) -> int:
    """Run a plan that is no part of a sweep and print what came of it; the exit status.

    Args:
        planned: what was checked.
        launch: where the run goes.
        new_folders: the directory and those of its parents that were made for it, innermost first.

    Raises InputError: the run was refused; what was made for it is gone again.
    """
    tracking = Tracking(planned.settings, console)
    # The manifest and the tracker name places that hold wherever somebody reads them.
    lasting = replace(launch, directory=launch.directory.absolute())
    outcome = perform(planned, lasting, tracking, number=None)
    if outcome is None:
        return report_run_on_disk(console, launch.directory)
    directory = RunDirectory(launch.directory)
    try:
        status = report_run(console, directory, outcome.manifest, outcome.summary)
    except Refused:
        shutil.rmtree(new_folders[0])
        # A parent may hold another run by now.
        with suppress(OSError):
            for parent in new_folders[1:]:
                parent.rmdir()
        raise
    tracking.print_links()
    return status


def perform_member(settings: Settings, launch: Launch, *, number: int) -> None:
    """Plan and run one of a sweep's runs; the launching process reads its directory.

    Raises Interrupted: a signal arrived; the one way to keep a sweep from going on.
    """
    try:
        member = plan(settings)
    except InputError as error:
        # A file has changed since the command line was checked.
        console.print(f"{launch.directory.name}: {error}", markup=False)
        return
    outcome = perform(member, launch, Tracking(settings, console), number=number)
    if outcome and outcome.signal:
        raise outcome.signal


def perform(
    planned: Plan, launch: Launch, tracking: Tracking, *, number: int | None
) -> Outcome | None:
    """Run a plan.

    Args:
        planned: what was checked.
        launch: where the run goes.
        tracking: logs the run.
        number: which run of a sweep it is, from 0.

    Returns:
        How it ended; None where it could not even say that in its directory, and the reason was
        printed.
    """
    title = "" if number is None else f"[{number}] "
    progress = _LiveProgress if console.is_terminal else _PlainProgress
    observer: Observer = progress(console, title)
    try:
        outcome = run(planned, launch, observer, tracking)
    except InputError as error:
        # Somebody else took the directory since the command line was checked.
        console.print(f"{launch.directory.name}: {error}", markup=False)
        return None
    except OSError as error:
        # The disk is full or gone: even the last manifest could not be written.
        kept = "what was written until then is kept" if launch.directory.exists() else "it is gone"
        console.print(f"{launch.directory}: {error.strerror}; {kept}", markup=False)
        return None
    if outcome.signal and not outcome.tracked:
        tracking.put_off(outcome.directory)
    return outcome


class Tally:
    """Accuracy, median latency and charge so far."""

    def __init__(self) -> None:
        self.done = self.failed = 0
        self._scored = self._correct = 0
        self._charged_usd = 0.0
        # By bucket, each a thousandth wide: a median without keeping every latency.
        self._latencies: Counter[int] = Counter()

    def add(self, record: Record) -> None:
        """Count one more record."""
        self.done += 1
        self.failed += not record.ok
        if record.correct is not None:
            self._scored += 1
            self._correct += record.correct
        self._charged_usd += record.charged_usd
        self._latencies[round(math.log(max(record.latency_s, _SHORTEST_S)) * _BUCKETS)] += 1

    def text(self) -> str:
        """The numbers in a few words."""
        parts = []
        if self._scored:
            parts.append(f"accuracy {self._correct / self._scored:.3f}")
        if self._latencies:
            buckets = sorted(self._latencies)
            up_to = accumulate(self._latencies[bucket] for bucket in buckets)
            middle = self._latencies.total() / 2
            median = next(
                bucket for bucket, count in zip(buckets, up_to, strict=True) if count >= middle
            )
            parts.append(f"p50 {math.exp(median / _BUCKETS):.3f} s")
        parts.append(f"charged ${self._charged_usd:.2f}")
        if self.failed:
            parts.append(f"failed {self.failed}")
        return " · ".join(parts)


class _Progress:
    """What both kinds of progress share: the numbers so far, and the answer to Ctrl-C."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._tally = Tally()

    def _name(self, plan: Plan) -> str:
        """Dataset, model and backend: what identifies a run to a person."""
        settings = plan.settings
        name = f"{settings.dataset.name} · {settings.model.name} · {settings.backend.name}"
        return f"{self._title}{name}{concurrency_mark(settings.runner.concurrency)}"

    def stopping(self) -> None:
        # Inside a signal handler only the bare call is safe: a stream may be in the middle of a
        # write.
        with suppress(OSError):
            os.write(_STDERR, _STOPPING)


class _LiveProgress(_Progress):
    """A bar with the numbers so far and the time that is left."""

    def __init__(self, console: Console, title: str) -> None:
        super().__init__(console, title)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}", markup=False),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._bar: TaskID | None = None
        self._drawn = 0.0

    def started(self, plan: Plan) -> None:
        self._bar = self._progress.add_task(self._name(plan), total=len(plan.tasks), numbers="")
        self._progress.start()

    def recorded(self, record: Record) -> None:
        self._tally.add(record)
        if self._bar is not None and time.monotonic() - self._drawn > _LIVE_SECONDS:
            self._drawn = time.monotonic()
            self._progress.update(self._bar, completed=self._tally.done, numbers=self._tally.text())

    def finished(self) -> None:
        self._progress.stop()


class _PlainProgress(_Progress):
    """A line at the start, and one whenever enough tasks or time have passed."""

    _planned = 0
    _last_line = 0.0

    def started(self, plan: Plan) -> None:
        self._planned = len(plan.tasks)
        self._print(f"{self._name(plan)}: {self._planned} tasks")

    def recorded(self, record: Record) -> None:
        self._tally.add(record)
        step = max(1, -(-self._planned // _PLAIN_LINES))
        due = self._tally.done % step == 0 or self._tally.done == self._planned
        if due or time.monotonic() - self._last_line > _PLAIN_SECONDS:
            self._print(f"{self._title}{self._tally.done}/{self._planned} {self._tally.text()}")

    def finished(self) -> None:
        pass

    def _print(self, line: str) -> None:
        self._last_line = time.monotonic()
        self._console.print(line, markup=False, highlight=False)
