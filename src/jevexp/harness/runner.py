"""Puts tasks to a provider, one after the other, exactly as the benchmark's protocol says."""

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from jevexp.backends.protocol import Backend
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness.attempt import Attempts, Evidence
from jevexp.harness.interrupts import Interrupts
from jevexp.harness.session import SessionModel
from jevexp.harness.stops import StopReason, StopRules
from jevexp.harness.tariff import Tariff
from jevexp.ledger import CapReached, Ledger, LedgerUnavailable, Overcharged

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How far a run came: how many tasks have a record, and the rule that stopped it."""

    attempted: int
    stop: StopReason | None


class Runner:
    """One provider, one ledger, one place for evidence.

    Args:
        backend: an open provider.
        ledger: the cap that every request reserves from.
        evidence: where records and raw evidence go.
        model: the model that is requested.
        tariff: prices, for the cost of an answer.
        reserve_usd: what a request reserves at least, in US dollars.
        session: the model that every answer has to come from, or None to let them differ.
        clock: seconds, for latencies.
        now: seconds since the epoch, for the records' `ts`.
        interrupts: holds signals back while evidence is written; None lets them through.
    """

    def __init__(
        self,
        backend: Backend,
        ledger: Ledger,
        evidence: Evidence,
        *,
        model: str,
        tariff: Tariff,
        reserve_usd: float,
        session: SessionModel | None = None,
        clock: Callable[[], float] = time.perf_counter,
        now: Callable[[], float] = time.time,
        interrupts: Interrupts | None = None,
    ) -> None:
        self._attempts = Attempts(
            backend,
            ledger,
            evidence,
            model=model,
            tariff=tariff,
            reserve_usd=reserve_usd,
            clock=clock,
            now=now,
            waiting=self._waiting,
        )
        self._evidence = evidence
        self._rules = StopRules(session)
        self._interrupts = interrupts

    def run(
        self, tasks: Iterable[Task], on_record: Callable[[Record], None] | None = None
    ) -> RunOutcome:
        """Attempt the tasks in order until the last one or a stop rule.

        Raises:
            Interrupted: a signal arrived; a task whose wait was broken off keeps its reservation.
        """
        attempted = 0
        for task in tasks:
            if self._interrupts:
                self._interrupts.check()
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
        record = self._attempts.keep(self._attempts.ask(self._attempts.reserve(task)))
        self._evidence.append(record)
        return record

    def _waiting(self) -> AbstractContextManager[None]:
        return self._interrupts.asking() if self._interrupts else nullcontext()
