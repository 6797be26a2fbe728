"""Puts tasks to a provider, several at once; records are in the order of the dataset."""

from collections.abc import Callable, Sequence

from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness.runner import RunOutcome
from jevexp.harness.steps import RunContext, RunFiles, TaskSteps
from jevexp.harness.stops import StopReason, StopRules
from jevexp.harness.worker_pool import Completed, WorkerPool


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
        pool = WorkerPool(self._steps, tasks, self._concurrency, self._interrupted)
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
        if results.stop is None and pool.cap_reached:
            return RunOutcome(results.attempted, StopReason.CAP_REACHED)
        if results.stop is None and pool.ledger_unavailable:
            return RunOutcome(results.attempted, StopReason.LEDGER_UNAVAILABLE)
        if results.stop is None and pool.left_some and self._run.interrupts:
            self._run.interrupts.check()
        return RunOutcome(results.attempted, results.stop)

    def _interrupted(self) -> bool:
        return self._run.interrupts is not None and self._run.interrupts.pending is not None


class OrderedWriter:
    """Appends each record once every one before it is there.

    Args:
        files: where records go.
        rules: what they say about going on.
        on_record: called for each record once it is in the results.
    """

    def __init__(
        self,
        files: RunFiles,
        rules: StopRules,
        on_record: Callable[[Record], None] | None,
    ) -> None:
        self._files = files
        self._rules = rules
        self._on_record = on_record
        self._waiting: dict[int, Completed] = {}
        self._damaged = False
        self.placed = 0
        self.attempted = 0
        self.stop: StopReason | None = None

    def keep(self, answers: Sequence[Completed]) -> None:
        """Hold on to further records until `finish`."""
        self._waiting |= {answer.place: answer for answer in answers}

    def take(self, answers: Sequence[Completed]) -> None:
        """Append the records whose turn it is, and keep the others."""
        self.keep(answers)
        due = []
        while (answer := self._waiting.pop(self.placed, None)) is not None:
            due.append(answer)
            self.placed += 1
        self._append(due)
        early = [
            answer.record
            for answer in answers
            if answer.record is not None and answer.place >= self.placed
        ]
        if early:
            self._files.append_early(early)

    def finish(self) -> None:
        """Append what still waits, past the places that were never answered."""
        if self._damaged:
            # Half of a line may be there; what waits is in the file of early records.
            return
        self._append([self._waiting[place] for place in sorted(self._waiting)])
        self._waiting.clear()
        self._files.drop_early()

    def _append(self, due: Sequence[Completed]) -> None:
        records = [answer.record for answer in due if answer.record is not None]
        if records:
            self._damaged = True
            self._files.append_all(records)
            self._damaged = False
        for answer in due:
            self._note(answer.record)

    def _note(self, record: Record | None) -> None:
        """Count a record that is in the results; the first rule that it meets stays the reason."""
        if record is None:
            self.stop = self.stop or StopReason.OVERCHARGED
            return
        self.attempted += 1
        if self._on_record:
            self._on_record(record)
        stop = self._rules.after(record)
        self.stop = self.stop or stop
