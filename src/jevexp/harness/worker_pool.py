"""The threads that ask: they reserve and send in dataset order, whatever order answers come in."""

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness.steps import Answered, Reserved, TaskSteps
from jevexp.harness.stops import STOP_STATUSES
from jevexp.ledger import CapReached, LedgerUnavailable, Overcharged

log = logging.getLogger(__name__)

# How many places the answers may run ahead of one that is slow, for each request under way.
_AHEAD = 64


@dataclass(frozen=True, slots=True)
class Completed:
    """What came of the task at a place of the dataset; an overcharged one has no record."""

    place: int
    record: Record | None


class WorkerPool:
    """Asks with at most `concurrency` requests under way.

    There are twice as many threads: while one half waits for the provider, the other half writes
    what came back and reserves for what goes out next, so that the disk keeps no slot empty.
    Everything that decides about order happens under one condition; requests and disk do not.

    Args:
        steps: of a task.
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
        self.cap_reached = self.ledger_unavailable = False
        self.left_some = False
        self.error: BaseException | None = None

    def start(self) -> None:
        """Begin to ask."""
        for number in range(self._working):
            # A request that was broken off must not keep the process from ending.
            threading.Thread(target=self._work, name=f"asking-{number}", daemon=True).start()

    def wait(self, waiting: Callable[[], AbstractContextManager[None]]) -> list[Completed]:
        """Wait for answers; those that are there, or none when no more will come."""
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
        """Break off: what is not answered yet stays so. The answers that were not fetched yet."""
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
        while True:
            settled = self._settled
            try:
                with self._disk():
                    reserved = self._steps.reserve(task)
                    self._reserved += 1
                    return reserved
            except CapReached:
                if not self._gives_back(settled):
                    return None
            except LedgerUnavailable as error:
                log.error("%s", error)
                self.ledger_unavailable = True
                self.send_no_more()
                return None

    def _gives_back(self, settled: int) -> bool:
        """Wait for another settlement than those before; False where none will come."""
        with self._changed:
            if settled == self._settled == self._reserved:
                self.cap_reached = self._no_more = True
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._over or self._settled > settled)
            return not self._over

    def _attempt(self, place: int, reserved: Reserved) -> None:
        if not self._may_send(place):
            self.left_some = True
            with self._disk(), self._settling():
                self._steps.release(reserved)
            return
        try:
            answered = self._steps.ask(reserved)
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()
        if answered.decision.status_code in STOP_STATUSES:
            # Whatever the tasks before it come to, the run ends here at the latest.
            self.send_no_more()
        with self._disk():
            self._completed.append(Completed(place, self._keep(answered)))
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

    def _keep(self, answered: Answered) -> Record | None:
        try:
            with self._settling():
                return self._steps.keep(answered)
        except Overcharged:
            self.send_no_more()
            return None

    @property
    def _over(self) -> bool:
        return self._no_more or self._interrupted()

    @contextmanager
    def _settling(self) -> Iterator[None]:
        """A reservation comes to its end in here."""
        try:
            yield
        finally:
            with self._changed:
                self._settled += 1
                self._changed.notify_all()

    @contextmanager
    def _disk(self) -> Iterator[None]:
        """While in here, something is written; never after the run was broken off."""
        with self._changed:
            if self._abandoned:
                raise _Abandoned
            self._at_the_disk += 1
        try:
            yield
        finally:
            with self._changed:
                self._at_the_disk -= 1
                self._changed.notify_all()


class _Abandoned(Exception):
    """The run was broken off; nothing may be written any more."""
