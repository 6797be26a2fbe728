"""Puts tasks to a provider, one after the other, exactly as the benchmark's protocol says."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness.steps import RunContext, TaskSteps
from jevexp.harness.stops import StopReason, StopRules
from jevexp.ledger import CapReached, LedgerUnavailable, Overcharged

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How far a run came: how many tasks have a record, and the rule that stopped it."""

    attempted: int
    stop: StopReason | None


class TaskRunner(Protocol):
    """Puts tasks to a provider."""

    def run(
        self, tasks: Sequence[Task], on_record: Callable[[Record], None] | None = None
    ) -> RunOutcome:
        """Attempt the tasks in order until the last one or a stop rule."""


class Runner:
    """One provider, one ledger, one place for evidence, one task at a time."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._steps = TaskSteps(run, waiting=run.waiting)
        self._rules = StopRules(run.expected)

    def run(
        self, tasks: Sequence[Task], on_record: Callable[[Record], None] | None = None
    ) -> RunOutcome:
        """Attempt the tasks in order until the last one or a stop rule.

        Raises:
            Interrupted: a signal arrived; a task whose wait was broken off keeps its reservation.
        """
        attempted = 0
        for task in tasks:
            if self._run.interrupts:
                self._run.interrupts.check()
            try:
                record = self._attempt(task)
            except CapReached:
                return RunOutcome(attempted, StopReason.CAP_REACHED)
            except LedgerUnavailable as error:
                log.error("%s", error)
                return RunOutcome(attempted, StopReason.LEDGER_UNAVAILABLE)
            except Overcharged:
                return RunOutcome(attempted, StopReason.OVERCHARGED)
            attempted += 1
            if on_record:
                on_record(record)
            if stop := self._rules.after(record):
                return RunOutcome(attempted, stop)
        return RunOutcome(attempted, None)

    def _attempt(self, task: Task) -> Record:
        record = self._steps.keep(self._steps.ask(self._steps.reserve(task)))
        self._run.files.append(record)
        return record
