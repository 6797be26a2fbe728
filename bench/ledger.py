"""What the runner costs per task, with ledgers of 0 to 100,000 rows before the first task.

The provider answers at once, evidence and ledger are real files. Time inside `os.fsync` belongs to
the disk and is shown apart. Beside it stand a ledger that reads its file again for every change, as
the pinned harness does, and one in SQLite, whose own fsyncs cannot be taken out. All figures are
medians over the tasks of several runs, taken in turn.
"""

import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from figures import figure
from rereading import RereadingLedger
from sqlalchemy import insert, update
from sqlalchemy.engine import make_url

from jevexp.core.decision import Decision, ProbsSource, Request
from jevexp.core.json import dumps
from jevexp.core.task import Task
from jevexp.harness.runner import RunContext, Runner, Tariff
from jevexp.ledger import engine
from jevexp.ledger.base import Ledger
from jevexp.ledger.database import DatabaseLedger
from jevexp.ledger.file import FileLedger
from jevexp.ledger.state import cap_row, reservation_row
from jevexp.store import RunDirectory

SIZES = (0, 1_000, 10_000, 100_000)
ROUNDS = 3
TASKS = 100
# Reading 100,000 rows twice for each task takes its time.
TASKS_REREADING = {0: 30, 1_000: 30, 10_000: 10, 100_000: 2}
FLAT_GOAL = 1.5
TASK_GOAL_MS = 1.0
CAP_USD = 1e6


@dataclass
class Figures:
    """Milliseconds: opening the ledger, each task without its fsyncs, and these."""

    start: list[float] = field(default_factory=list)
    task: list[float] = field(default_factory=list)
    fsync: list[float] = field(default_factory=list)


class AtOnce:
    """A provider that needs no time."""

    name = "at-once"
    cost_basis: str | None = None

    def open(self, log_directory: Path) -> "AtOnce":
        """Nothing is opened."""
        del log_directory
        return self

    def close(self) -> None:
        """Nothing is closed."""

    def describe(self) -> dict[str, Any]:
        """Nothing is said."""
        return {}

    def decide(self, request: Request) -> Decision:
        """The same answer for everything."""
        return Decision(
            ok=True,
            model=request.model,
            probs={"no": 0.25, "yes": 0.75},
            probs_source=ProbsSource.NATIVE,
            request={"state": request.state},
            response={"p": 0.75},
        )


class Fsyncs:
    """Takes the time of every `os.fsync` while it is entered."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._fsync = os.fsync

    def __enter__(self) -> "Fsyncs":
        os.fsync = self._timed
        return self

    def __exit__(self, *_: object) -> None:
        os.fsync = self._fsync

    def _timed(self, file: int) -> None:
        started = time.perf_counter()
        self._fsync(file)
        self.seconds += time.perf_counter() - started


def measure(folder: Path, opened: Callable[[], Ledger], count: int, figures: Figures) -> None:
    """Run `count` tasks and add their figures."""
    started = time.perf_counter()
    ledger = opened()
    figures.start.append(1000 * (time.perf_counter() - started))
    directory = RunDirectory.create(folder)
    marks: list[tuple[float, float]] = []
    with Fsyncs() as fsyncs, ledger:
        runner = Runner(
            RunContext(
                AtOnce(), ledger, directory, model="m", tariff=Tariff(0.0, 0.0), reserve_usd=0.02
            )
        )
        marks.append((time.perf_counter(), fsyncs.seconds))
        runner.run(tasks(count), lambda _: marks.append((time.perf_counter(), fsyncs.seconds)))
    directory.release()
    for before, after in itertools.pairwise(marks):
        fsync = after[1] - before[1]
        figures.task.append(1000 * (after[0] - before[0] - fsync))
        figures.fsync.append(1000 * fsync)


def tasks(count: int) -> list[Task]:
    """Short yes-or-no tasks."""
    return [
        Task.model_validate(
            {
                "id": f"task-{number}",
                "family": "bench",
                "state": f"State {number}: the parcel weighs 5 kg.",
                "question": {"type": "noul", "instructions": "Is it heavier than 4 kg?"},
                "labels": ["no", "yes"],
                "expected": "yes",
                "split": "private",
            }
        )
        for number in range(count)
    ]


def earlier_rows(count: int) -> list[dict[str, Any]]:
    """A cap, and reservations that were settled; none at all for 0."""
    rows = [cap_row(CAP_USD, 1.0)] if count else []
    for number in range((count - 1) // 2):
        name = f"{number:032x}"
        task_id = f"old-{number}"
        meta = {"task_id": task_id, "adapter": "x"}
        rows.append(reservation_row("reserve", name, 0.02, 1.0, meta))
        meta = {"task_id": task_id, "basis": "x"}
        rows.append(reservation_row("settle", name, 0.0, 1.0, meta))
    return rows


def write_file(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as they are in a file."""
    path.write_text("".join(f"{dumps(row)}\n" for row in rows))


def fill_database(url: str, rows: list[dict[str, Any]]) -> None:
    """Write rows as they are in a database."""
    with DatabaseLedger(make_url(url), CAP_USD) as ledger:
        if not rows:
            return
        values = [
            {
                "seq": number,
                "event": row["event"],
                "reservation_id": row.get("reservation_id"),
                "usd": row.get("cap_usd", row.get("reserved_usd", row.get("charged_usd"))),
                "ts": row["ts"],
                "meta": dumps(row.get("meta")),
            }
            for number, row in enumerate(rows, 1)
        ]
        with ledger._database.engine.begin() as connection:
            connection.execute(insert(engine.rows), values)
            connection.execute(update(engine.totals).values(cap_usd=CAP_USD, n_rows=len(rows)))


def main() -> int:
    """Print the table; 1 when a goal is missed."""
    found = {name: {size: Figures() for size in SIZES} for name in ("file", "reread", "sqlite")}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for turn in range(ROUNDS):
            for size in SIZES:
                rows = earlier_rows(size)
                paths = [place / f"{turn}-{size}-{name}.jsonl" for name in ("file", "reread")]
                for path in paths:
                    write_file(path, rows)
                url = f"sqlite:///{place}/{turn}-{size}.db"
                fill_database(url, rows)
                ledgers: dict[str, Callable[[], Ledger]] = {
                    "file": lambda path=paths[0]: FileLedger(path, CAP_USD),
                    "reread": lambda path=paths[1]: RereadingLedger(path, CAP_USD),
                    "sqlite": lambda url=url: DatabaseLedger(make_url(url), CAP_USD),
                }
                for name, opened in ledgers.items():
                    count = TASKS_REREADING[size] if name == "reread" else TASKS
                    run = place / f"{turn}-{size}-{name}"
                    measure(run, opened, count, found[name][size])
    return report(found)


def report(found: dict[str, dict[int, Figures]]) -> int:
    """Print what was measured, and whether the goals are met."""
    middle = statistics.median
    print(f"overhead per task in ms, medians of {ROUNDS} runs; fsync apart, but for SQLite's own")
    print("  rows before  file  + fsync   start   rereading  + fsync   SQLite   start")
    for size in SIZES:
        file, reread, sqlite = (found[name][size] for name in ("file", "reread", "sqlite"))
        print(
            f"  {size:>11,}  {middle(file.task):4.2f}  {middle(file.fsync):7.2f}  "
            f"{middle(file.start):6.1f}  {middle(reread.task):10.2f}  {middle(reread.fsync):7.2f}  "
            f"{middle(sqlite.task):7.2f}  {middle(sqlite.start):6.1f}"
        )
        figure(
            f"{size:,} rows before: a task, its fsyncs; rereading",
            f"{middle(file.task):.2f}, {middle(file.fsync):.2f}; {middle(reread.task):.2f} ms",
        )
    medians = [middle(found["file"][size].task) for size in SIZES]
    ratio = max(medians) / min(medians)
    print(f"  most of the file's to the least  {ratio:.2f} (goal: at most {FLAT_GOAL})")
    print(f"  most of the file's  {max(medians):.2f} ms (goal: below {TASK_GOAL_MS:g})")
    flat, quick = ratio <= FLAT_GOAL, max(medians) < TASK_GOAL_MS
    figure("slowest to quickest length", f"× {ratio:.2f}", f"at most {FLAT_GOAL}", met=flat)
    figure("a task at most", f"{max(medians):.2f} ms", f"below {TASK_GOAL_MS:g} ms", met=quick)
    return 0 if flat and quick else 1


if __name__ == "__main__":
    sys.exit(main())
