"""One pass over the results: every record with its raw file, its task and its place."""

import hashlib
from collections.abc import Iterator
from typing import Any

from jevexp.backends.rereading import RawAnswer
from jevexp.core.json import loads
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.store import RunDirectory
from jevexp.store.directory import EARLY, LEDGER, RAW, RESULTS
from jevexp.store.records import PENDING, raw_name
from jevexp.untrusted.files import TooLong, numbered_lines, opened, read_document
from jevexp.verification.check import Check
from jevexp.verification.context import VerificationContext
from jevexp.verification.ledger import MOST_RECORDS, Costs, Rows, check_ledger
from jevexp.verification.requests import Requests
from jevexp.verification.scores import Answers, Scores
from jevexp.verification.stops import Stops

# What later checks need no more, and what makes a record large.
_LARGE: dict[str, Any] = {"probs_as_returned": None, "usage": {}, "runtime": None}


class RecordPass:
    """Looks at every record once; afterwards only what the sums need is still held.

    Attributes:
        records: by task id, in their order, without what only their own checks needed.
        lines: the line of each record, by task id.
    """

    def __init__(self, context: VerificationContext) -> None:
        self._context = context
        self.records: dict[str, Record] = {}
        self.lines: dict[str, int] = {}
        self._order = Check("attempts", "every task attempted at most once, in the dataset's order")
        self._evidence = Check("raw files", "every record's raw file, and no raw file without one")
        self._requests = Requests(context)
        self._answers = Answers(context)
        self._scores = Scores()
        self._costs = Costs(context)
        self._stops = Stops(context)
        self._claimed: set[str] = set()
        self._place = 0
        # Tasks without a record: before an adopted record, and before one that was made here.
        self._skipped: list[tuple[str, int]] = []
        self._gaps: list[tuple[str, int]] = []

    def run(self) -> list[Check]:
        """All checks that look at single records."""
        with self._order.guarded(RESULTS):
            for line, record in self._read():
                self._look(line, record)
        early = self._look_at_early()
        held = self._look_at_held()
        asked = {
            task_id: (self.lines[task_id], record)
            for task_id, record in self.records.items()
            if task_id not in self._context.adopted
        }
        ledger, rows = check_ledger(self._context, asked, early)
        for task_id in sorted(early | held):
            if rows and task_id not in rows.by_task and task_id not in self._context.adopted:
                ledger.fail(LEDGER, f"task {task_id!r} has an answer and no reservation")
        self._check_gaps(rows)
        self._check_unclaimed(rows, early)
        here = self._context.tasks is not None
        if not here:
            self._scores.check.skip("tasks are not here")
            self._order.notes.append("not held against the dataset's order: tasks are not here")
        return [
            self._order,
            self._evidence,
            self._requests.finish(tasks_here=here),
            self._answers.finish(),
            self._scores.check,
            self._costs.check,
            ledger,
            self._stops.finish(rows),
        ]

    def _read(self) -> Iterator[tuple[int, Record]]:
        with opened(self._context.root / RESULTS, follow_links=False) as file:
            try:
                for number, line in numbered_lines(file):
                    if number > MOST_RECORDS:
                        message = f"more than {MOST_RECORDS} records; the others are not read"
                        self._order.fail(RESULTS, message, line=number)
                        return
                    if not line.endswith(b"\n"):
                        self._torn(number)
                        return
                    with self._order.guarded(RESULTS, line=number):
                        yield number, Record.model_validate(loads(line))
            except TooLong as error:
                self._order.fail(RESULTS, f"a line is {error}", line=error.line)

    def _torn(self, line: int) -> None:
        if self._context.cut_off:
            self._order.notes.append(f"{RESULTS}:{line}: torn, and read by nobody")
        else:
            self._order.fail(RESULTS, "ends in the middle of a record", line=line)

    def _look(self, line: int, record: Record) -> None:
        context = self._context
        self._order.count += 1
        if record.task_id in self.records:
            self._order.fail(RESULTS, f"task {record.task_id!r} has a second record", line=line)
            return
        task = self._task(line, record)
        self._look_at_raw(record, task, RESULTS, line)
        adopted = record.task_id in context.adopted
        if not adopted:
            self._stops.look(record, line)
        self._costs.look(record, RESULTS, line, adopted=adopted)
        if task is None and context.tasks is not None:
            return
        probs = record.probs if task and set(record.probs or ()) == set(task.labels) else None
        self.records[record.task_id] = record.model_copy(update={**_LARGE, "probs": probs})
        self.lines[record.task_id] = line

    def _task(self, line: int, record: Record) -> Task | None:
        """The record's task; the ones before it that have no record are kept for the end."""
        tasks = self._context.tasks
        if tasks is None:
            return None
        place = self._context.places.get(record.task_id)
        if place is None:
            message = f"task {record.task_id!r} is not among the planned ones"
            self._order.fail(RESULTS, message, line=line)
            return None
        if place < self._place:
            message = f"task {record.task_id!r} after {tasks[self._place - 1].id!r}"
            self._order.fail(RESULTS, message, line=line)
            return tasks[place]
        self._skipped += [(task.id, line) for task in tasks[self._place : place]]
        self._place = place + 1
        if record.task_id not in self._context.adopted:
            self._gaps += self._skipped
            self._skipped = []
        return tasks[place]

    def _look_at_raw(self, record: Record, task: Task | None, file: str, line: int) -> None:
        name = raw_path(record.task_id)
        self._evidence.count += 1
        self._claimed.add(name)
        if name not in self._context.tree.files:
            self._evidence.fail(file, f"{name} is missing", line=line)
            return
        with self._evidence.guarded(name):
            data = read_document(self._context.root / name, follow_links=False)
            if hashlib.sha256(data).hexdigest() != record.raw_sha256:
                message = f"its SHA-256 is not the raw_sha256 of {file}:{line}"
                self._evidence.fail(name, message)
            self._look_at_answer(record, task, data, name, file=file, line=line)

    def _look_at_answer(
        self,
        record: Record,
        task: Task | None,
        data: bytes,
        name: str,
        *,
        file: str,
        line: int | None,
    ) -> None:
        """Hold a record, which stands in `file`, against the raw evidence `data` in `name`."""
        content = loads(data)
        if set(content) != {"request", "response", "http_status"}:
            self._evidence.fail(name, "does not hold request, response and http_status alone")
            return
        place = file if line is None else f"{file}:{line}"
        if content["http_status"] != record.status_code:
            self._evidence.fail(name, f"http_status: is not the status_code of {place}")
        raw = RawAnswer(content["request"], content["response"], record)
        request = self._requests.look(task, raw, name)
        decision = self._answers.look(request, raw, name, place)
        if task is not None:
            self._scores.look(task, raw, decision, file, line)

    def _check_gaps(self, rows: Rows | None) -> None:
        """A task that was passed over has to be one that was sent and has no record for a reason.

        Adopted records stand at their places also where this run never came to the ones before.
        """
        for task_id, line in self._gaps:
            if rows is None or task_id not in rows.cut_off:
                message = f"task {task_id!r} was passed over, and nothing says why"
                self._order.fail(RESULTS, message, line=line)

    def _look_at_early(self) -> set[str]:
        """Check the records that waited for their turn when the process was killed.

        Returns:
            Their tasks.
        """
        if EARLY not in self._context.tree.files:
            return set()
        early: set[str] = set()
        with self._evidence.guarded(EARLY):
            records = RunDirectory(self._context.root).early_records()
            for line, record in enumerate(records, 1):
                early.add(record.task_id)
                if record.task_id in self.records:
                    # Written to the results, and not forgotten here before the process was killed.
                    continue
                self._look_at_raw(record, self._planned(record), EARLY, line)
                adopted = record.task_id in self._context.adopted
                self._costs.look(record, EARLY, line, adopted=adopted)
            self._evidence.notes.append(f"{len(early)} records in {EARLY} wait for their turn")
        return early

    def _look_at_held(self) -> set[str]:
        """Check the answers that had arrived and had no record when the process was killed.

        Returns:
            Their tasks.
        """
        files = self._context.tree.below(PENDING)
        if not files:
            return set()
        self._evidence.notes.append(f"{len(files)} answers in {PENDING}/ have no record yet")
        held: set[str] = set()
        with self._evidence.guarded(PENDING):
            for answer in RunDirectory(self._context.root).held():
                record = answer.record
                if record.task_id in self.records:
                    continue
                held.add(record.task_id)
                name = f"{PENDING}/{raw_name(record.task_id)}"
                with self._evidence.guarded(name):
                    data = answer.raw.encode()
                    self._look_at_answer(
                        record, self._planned(record), data, name, file=name, line=None
                    )
                self._costs.look(record, name, None, adopted=False)
        return held

    def _planned(self, record: Record) -> Task | None:
        """The task of a record that is in no results yet; a failure where it is not planned."""
        tasks = self._context.tasks
        if tasks is None:
            return None
        place = self._context.places.get(record.task_id)
        if place is None:
            message = f"task {record.task_id!r} has an answer and is not among the planned ones"
            self._order.fail(RESULTS, message)
            return None
        return tasks[place]

    def _check_unclaimed(self, rows: Rows | None, early: set[str]) -> None:
        cut_off = rows.cut_off if rows else set()
        # A resumed run that was cut off while it took answers over has their raw files first.
        coming = self._context.adopted if self._context.cut_off else frozenset()
        unfinished = {raw_path(task_id) for task_id in early | cut_off | coming}
        for below in self._context.tree.below(RAW):
            name = f"{RAW}/{below}"
            if name in self._claimed:
                continue
            if name in unfinished:
                self._evidence.notes.append(f"{name}: of a task that was cut off before its record")
            else:
                self._evidence.fail(name, "belongs to no record")


def raw_path(task_id: str) -> str:
    """Where a task's raw file is inside the run's directory."""
    return f"{RAW}/{raw_name(task_id)}"
