"""Asks several tasks at once; records are in the order of the dataset."""

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness.runner import Reserved, RunContext, RunOutcome, TaskSteps
from jevexp.harness.stops import StopReason, StopRules, stop_status
from jevexp.ledger.state import CapReached, LedgerUnavailable, Overcharged
from jevexp.store import RunDirectory

log = logging.getLogger(__name__)

# How many places the answers may run ahead of one that is slow, for each request under way.
_AHEAD = 64


class ConcurrentRunner:
    """As `Runner`, with up to `concurrency` requests under way.

    Tasks are sent and recorded in dataset order. A stop rule is applied to the records in that
    order; the requests that are under way by then come to their records, and nothing new is sent.
    An answer that turns us away or costs more than its reservation keeps anything new from being
    sent as soon as it is there. Where the cap refuses a reservation, the run waits for what its own
    requests give back, and ends when none is left.
    """

    def __init__(self, run: RunContext, *, concurrency: int) -> None:
        self._run = run
        self._concurrency = concurrency
        self._steps = TaskSteps(run)
        self._rules = StopRules(run.expected)

    def run(
        self, tasks: Sequence[Task], on_record: Callable[[Record], None] | None = None
    ) -> RunOutcome:
        """Attempt the tasks until the last one or a stop rule.

        Raises:
            Interrupted: a signal arrived; tasks whose wait was broken off keep their reservation.
        """
        interrupts = self._run.interrupts
        pool = WorkerPool(
            self._steps,
            tasks,
            self._concurrency,
            interrupted=lambda: interrupts is not None and interrupts.pending is not None,
        )
        results = OrderedWriter(self._run.files, self._rules, on_record)
        pool.start()
        try:
            while answers := pool.wait(self._run.waiting):
                results.take(answers)
                pool.placed(results.placed)
                if results.stop:
                    pool.send_no_more()
        except BaseException:
            results.keep(pool.abandon())
            raise
        finally:
            results.finish()
        if pool.error is not None:
            raise pool.error
        stop = results.stop or pool.stop
        if stop is None and pool.left_some and interrupts:
            interrupts.check()
        return RunOutcome(results.attempted, stop)


class Completed(NamedTuple):
    """What came of the task at a place of the dataset; an overcharged one has no record."""

    place: int
    record: Record | None


class OrderedWriter:
    """Appends each record once every one before it is there.

    Args:
        files: where records go.
        rules: when to stop.
        on_record: called for each record once it is in the results.
    """

    def __init__(
        self, files: RunDirectory, rules: StopRules, on_record: Callable[[Record], None] | None
    ) -> None:
        self._files = files
        self._rules = rules
        self._on_record = on_record
        self._waiting: dict[int, Record | None] = {}
        self._damaged = False
        self.placed = 0
        self.attempted = 0
        self.stop: StopReason | None = None

    def keep(self, answers: Iterable[Completed]) -> None:
        """Hold on to further records until `finish`."""
        self._waiting.update(answers)

    def take(self, answers: Sequence[Completed]) -> None:
        """Append the records whose turn it is, and keep the others."""
        self.keep(answers)
        due = []
        while self.placed in self._waiting:
            due.append(self._waiting.pop(self.placed))
            self.placed += 1
        self._append(due)
        if early := [record for place, record in answers if record and place >= self.placed]:
            self._files.append_early(early)

    def finish(self) -> None:
        """Append what still waits, past the places that were never answered."""
        if self._damaged:
            # Half of a line may be there; what waits is in the file of early records.
            return
        self._append([self._waiting.pop(place) for place in sorted(self._waiting)])
        self._files.drop_early()

    def _append(self, due: Sequence[Record | None]) -> None:
        """Append and count records; the first rule that one meets stays the reason to stop."""
        if records := [record for record in due if record is not None]:
            self._damaged = True
            self._files.append_all(records)
            self._damaged = False
        for record in due:
            if record is None:
                self.stop = self.stop or StopReason.OVERCHARGED
                continue
            self.attempted += 1
            if self._on_record:
                self._on_record(record)
            reason = self._rules.after(record)
            self.stop = self.stop or reason


class WorkerPool:
    """Asks with at most `concurrency` requests under way.

    There are twice as many threads: while one half waits for the provider, the other half writes
    what came back and reserves for what goes out next, so that the disk keeps no slot empty.
    Everything that decides about order happens under one condition; requests and disk do not.

    Args:
        steps: how a task is reserved for, asked and kept.
        tasks: in dataset order.
        concurrency: how many requests may be under way.
        interrupted: whether a signal has arrived, after which nothing new is sent.
    """

    def __init__(
        self,
        steps: TaskSteps,
        tasks: Iterable[Task],
        concurrency: int,
        interrupted: Callable[[], bool],
    ) -> None:
        self._steps = steps
        self._tasks = iter(tasks)
        self._concurrency = concurrency
        self._interrupted = interrupted
        self._completed: deque[Completed] = deque()
        # Rung after each answer, and when the last thread ends. The answers are not in it: a signal
        # may break off the wait after something was taken out.
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        # Held while a task is taken and reserved for, so that reservations are in order as well.
        self._taking = threading.Lock()
        self._changed = threading.Condition()
        self._taken = self._sent = self._placed = 0
        self._under_way = self._at_the_disk = self._reserved = self._settled = 0
        self._no_more = self._abandoned = False
        self._working = 2 * concurrency
        self.stop: StopReason | None = None
        self.left_some = False
        self.error: BaseException | None = None

    def start(self) -> None:
        """Begin to ask."""
        for number in range(self._working):
            # A request that was broken off must not keep the process from ending.
            threading.Thread(target=self._work, name=f"asking-{number}", daemon=True).start()

    def wait(self, waiting: Callable[[], AbstractContextManager[None]]) -> list[Completed]:
        """Wait for answers; returns those that arrived, or none when no more will come."""
        while True:
            with waiting():
                self._bell.get()
            # In this order: the last thread leaves its answer before it ends.
            ended = not self._working
            if (completed := self._fetch()) or ended:
                return completed

    def placed(self, count: int) -> None:
        """Say how many places, from the first one on, are in the results."""
        with self._changed:
            self._placed = count
            self._changed.notify_all()

    def send_no_more(self) -> None:
        """Let the requests under way come to their records, and send nothing new."""
        with self._changed:
            self._no_more = True
            self._changed.notify_all()

    def abandon(self) -> list[Completed]:
        """Stop at once, and return the answers that were not fetched yet."""
        with self._changed:
            self._no_more = self._abandoned = True
            self._changed.notify_all()
            # An answer that came before this is written to its end, and nothing after it.
            self._changed.wait_for(lambda: not self._at_the_disk)
        return self._fetch()

    def _fetch(self) -> list[Completed]:
        return [self._completed.popleft() for _ in range(len(self._completed))]

    # Each thread

    def _work(self) -> None:
        try:
            while (taken := self._take()) is not None:
                self._attempt(*taken)
        except _Abandoned:
            pass
        except BaseException as error:  # noqa: BLE001  the main thread raises it again
            self.error = self.error or error
            self.send_no_more()
        finally:
            with self._changed:
                self._working -= 1
                if not self._working:
                    self._bell.put(None)

    def _take(self) -> tuple[int, Reserved] | None:
        """The next task, with what it may cost set aside; None when none is to be sent."""
        with self._taking:
            with self._changed:
                ahead = _AHEAD * self._concurrency
                self._changed.wait_for(lambda: self._over or self._taken - self._placed < ahead)
            task = next(self._tasks, None)
            if task is None:
                return None
            reserved = None if self._over else self._reserve(task)
            if reserved is None:
                self.left_some = True
                return None
            place = self._taken
            self._taken += 1
            return place, reserved

    def _reserve(self, task: Task) -> Reserved | None:
        """Reserve; where the cap refuses, wait for what our own requests under way give back."""
        while not self._over:
            settled = self._settled
            try:
                with self._disk():
                    reserved = self._steps.reserve(task)
                    self._reserved += 1
                    return reserved
            except CapReached:
                with self._changed:
                    if settled == self._settled == self._reserved:
                        self.stop = StopReason.CAP_REACHED
                        self.send_no_more()
                    while not self._over and self._settled == settled:
                        self._changed.wait()
            except LedgerUnavailable as error:
                log.error("%s", error)
                self.stop = StopReason.LEDGER_UNAVAILABLE
                self.send_no_more()
        return None

    def _attempt(self, place: int, reserved: Reserved) -> None:
        if not self._may_send(place):
            self.left_some = True
            with self._disk(settles=True):
                self._steps.release(reserved)
            return
        try:
            answered = self._steps.ask(reserved)
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()
        if stop_status(answered.decision.status_code, answered.decision.error):
            # Whatever the tasks before it come to, the run ends here at the latest.
            self.send_no_more()
        with self._disk(settles=True):
            try:
                record = self._steps.keep(answered)
            except Overcharged:
                record = None
                self.send_no_more()
            self._completed.append(Completed(place, record))
            self._bell.put(None)

    def _may_send(self, place: int) -> bool:
        """Wait for this place's turn and a free slot; False where nothing is sent any more."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._over or (place == self._sent and self._under_way < self._concurrency)
            )
            if self._over:
                return False
            self._sent += 1
            self._under_way += 1
            self._changed.notify_all()
            return True

    @property
    def _over(self) -> bool:
        return self._no_more or self._interrupted()

    @contextmanager
    def _disk(self, *, settles: bool = False) -> Iterator[None]:
        """Surrounds every write; none starts after the run was broken off."""
        with self._changed:
            if self._abandoned:
                raise _Abandoned
            self._at_the_disk += 1
        try:
            yield
        finally:
            with self._changed:
                self._at_the_disk -= 1
                self._settled += settles
                self._changed.notify_all()


class _Abandoned(Exception):
    """The run was broken off; nothing may be written any more."""
