"""A concurrent run whose provider answers when a test says so."""

import json
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from jevexp.core.decision import Decision, Request
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness.concurrent import ConcurrentRunner
from jevexp.harness.interrupts import Interrupts
from jevexp.harness.runner import RunContext, RunOutcome, Tariff
from jevexp.harness.stops import ExpectedModel
from jevexp.ledger.file import FileLedger
from jevexp.store import RunDirectory
from tests.support.tasks import answer, task

YES = answer({"no": 0.25, "yes": 0.75}, request={"sent": True}, response={"got": "yes"})
# Far above what any of these tests waits for.
LONG = 30.0
Step = Callable[[int], Decision]


def many(count: int) -> list[Task]:
    """Tasks whose state is their number, which is all that a provider sees of them."""
    return [task("noul", id=f"t{number}", state=number) for number in range(count)]


class Provider:
    """Answers the task of a number with what `step` makes of it, in whatever thread asks.

    `sent` lists the numbers in the order in which they came, `most` is how many were asked at once.
    """

    name = "provider"
    cost_basis: str | None = None

    def __init__(self, step: Step) -> None:
        self._step = step
        self._lock = threading.Lock()
        self._under_way = self.most = 0
        self.sent: list[int] = []

    def open(self, log_directory: Path) -> "Provider":
        del log_directory
        return self

    def close(self) -> None: ...

    def describe(self) -> dict[str, Any]:
        return {"model": "m-1"}

    def decide(self, request: Request) -> Decision:
        with self._lock:
            self.sent.append(request.state)
            self._under_way += 1
            self.most = max(self.most, self._under_way)
        try:
            return self._step(request.state)
        finally:
            with self._lock:
                self._under_way -= 1


class Gates:
    """Answers that wait for others: `wait(n)` returns once somebody called `open(n)`."""

    def __init__(self, count: int) -> None:
        self._events = [threading.Event() for _ in range(count)]

    def open(self, number: int) -> None:
        self._events[number].set()

    def wait(self, number: int) -> None:
        assert self._events[number].wait(LONG)


class Bench:
    """One directory, one ledger, one run."""

    def __init__(self, folder: Path, cap_usd: float = 100.0) -> None:
        self.directory = RunDirectory.create(folder / "run")
        self.ledger_path = folder / "ledger.jsonl"
        self.ledger = FileLedger(self.ledger_path, cap_usd)
        self.tariff = Tariff()
        self.recorded: list[str] = []

    def run(
        self,
        provider: Provider,
        tasks: Sequence[Task],
        concurrency: int,
        *,
        evidence: Any = None,
        session: ExpectedModel | None = None,
        interrupts: Interrupts | None = None,
    ) -> RunOutcome:
        runner = ConcurrentRunner(
            RunContext(
                provider,
                self.ledger,
                evidence or self.directory,
                model="m-1",
                tariff=self.tariff,
                reserve_usd=0.02,
                expected=session,
                interrupts=interrupts,
            ),
            concurrency=concurrency,
        )
        with closing(self.directory):
            return runner.run(tasks, self._note)

    def _note(self, record: Record) -> None:
        self.recorded.append(record.task_id)

    def ids(self) -> list[str]:
        return [record.task_id for record in self.directory.records()]

    def rows(self, event: str) -> list[dict[str, Any]]:
        rows = [json.loads(line) for line in self.ledger_path.read_text().splitlines()]
        return [row for row in rows if row["event"] == event]

    def open_reservations(self) -> int:
        return len(self.rows("reserve")) - len(self.rows("settle"))
