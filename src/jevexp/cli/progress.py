"""What a person sees while a run goes on: a live bar on a terminal, plain lines elsewhere."""

import math
import os
import time
from collections import Counter
from contextlib import suppress
from itertools import accumulate

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from jevexp.core.record import Record
from jevexp.run.planning import Plan
from jevexp.run.running import Observer
from jevexp.store.manifest import concurrency_mark

_PLAIN_LINES = 8
_PLAIN_SECONDS = 30.0
# Redrawing costs more than a task that is answered at once.
_LIVE_SECONDS = 0.1
_BUCKETS = 1000
_SHORTEST_S = 1e-6
_STDERR = 2
_STOPPING = b"\ninterrupted: what is under way is finished first; Ctrl-C again ends at once\n"


class Tally:
    """Accuracy, median latency and charge so far."""

    def __init__(self) -> None:
        self.done = self.failed = 0
        self._scored = self._correct = 0
        self._charged_usd = 0.0
        self._latencies: Counter[int] = Counter()

    def add(self, record: Record) -> None:
        """Count one more record."""
        self.done += 1
        self.failed += not record.ok
        if record.correct is not None:
            self._scored += 1
            self._correct += record.correct
        self._charged_usd += record.charged_usd
        self._latencies[_bucket(record.latency_s)] += 1

    def text(self) -> str:
        """The numbers in a few words."""
        parts = []
        if self._scored:
            parts.append(f"accuracy {self._correct / self._scored:.3f}")
        if self._latencies:
            parts.append(f"p50 {self._median_s():.3f} s")
        parts.append(f"charged ${self._charged_usd:.2f}")
        if self.failed:
            parts.append(f"failed {self.failed}")
        return " · ".join(parts)

    def _median_s(self) -> float:
        """To half a thousandth, without keeping every latency."""
        middle = self._latencies.total() / 2
        ranked = sorted(self._latencies.items())
        up_to = accumulate(count for _, count in ranked)
        buckets = (
            bucket for (bucket, _), seen in zip(ranked, up_to, strict=True) if seen >= middle
        )
        return math.exp(next(buckets) / _BUCKETS)


def _bucket(seconds: float) -> int:
    """Which of the buckets, each a thousandth wide, a latency falls into."""
    return round(math.log(max(seconds, _SHORTEST_S)) * _BUCKETS)


class LiveProgress:
    """A bar with the numbers so far and the time that is left."""

    def __init__(self, console: Console, title: str) -> None:
        self._title = title
        self._tally = Tally()
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
        """Show the bar."""
        title = f"{self._title}{run_name(plan)}"
        self._bar = self._progress.add_task(title, total=len(plan.tasks), numbers="")
        self._progress.start()

    def recorded(self, record: Record) -> None:
        """Move the bar."""
        self._tally.add(record)
        if self._bar is not None and time.monotonic() - self._drawn > _LIVE_SECONDS:
            self._drawn = time.monotonic()
            self._progress.update(self._bar, completed=self._tally.done, numbers=self._tally.text())

    def stopping(self) -> None:
        """Say how to end at once."""
        _say_stopping()

    def finished(self) -> None:
        """Take the bar away; the table follows."""
        self._progress.stop()


class PlainProgress:
    """A line at the start, and one whenever enough tasks or time have passed."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._tally = Tally()
        self._planned = 0
        self._last_line = time.monotonic()

    def started(self, plan: Plan) -> None:
        """Say what runs."""
        self._planned = len(plan.tasks)
        self._say(f"{run_name(plan)}: {self._planned} tasks")

    def recorded(self, record: Record) -> None:
        """Say how far it is, now and then."""
        self._tally.add(record)
        step = max(1, -(-self._planned // _PLAIN_LINES))
        due = self._tally.done % step == 0 or self._tally.done == self._planned
        if due or time.monotonic() - self._last_line > _PLAIN_SECONDS:
            self._say(f"{self._tally.done}/{self._planned} {self._tally.text()}")

    def stopping(self) -> None:
        """Say how to end at once."""
        _say_stopping()

    def finished(self) -> None:
        """Nothing more to say."""

    def _say(self, line: str) -> None:
        self._last_line = time.monotonic()
        self._console.print(f"{self._title}{line}", markup=False, highlight=False)


def _say_stopping() -> None:
    # Inside a signal handler only the bare call is safe: a stream may be in the middle of a write.
    with suppress(OSError):
        os.write(_STDERR, _STOPPING)


def run_name(plan: Plan) -> str:
    """Dataset, model and backend: what identifies a run to a person."""
    settings = plan.settings
    name = f"{settings.dataset.name} · {settings.model.name} · {settings.backend.name}"
    return name + concurrency_mark(settings.runner.concurrency)


def make_observer(console: Console, *, number: int | None) -> Observer:
    """The observer that fits the terminal; `number` counts the runs of a sweep from 0."""
    title = "" if number is None else f"[{number}] "
    kind = LiveProgress if console.is_terminal else PlainProgress
    return kind(console, title)
