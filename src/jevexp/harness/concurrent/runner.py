"""Puts tasks to a provider, several at once."""

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext

from jevexp.backends.protocol import Backend
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness.attempt import Attempts
from jevexp.harness.concurrent.crew import Crew
from jevexp.harness.concurrent.in_order import InOrder, OrderedEvidence
from jevexp.harness.interrupts import Interrupts
from jevexp.harness.runner import RunOutcome
from jevexp.harness.session import SessionModel
from jevexp.harness.stops import StopReason, StopRules
from jevexp.harness.tariff import Tariff
from jevexp.ledger import Ledger


class ConcurrentRunner:
    """As `Runner`, with up to `concurrency` requests under way.

    Tasks are sent and recorded in dataset order. A stop rule is applied to the records in that
    order; the requests that are under way by then come to their records, and nothing new is sent.
    An answer that turns us away or costs more than its reservation keeps anything new from being
    sent as soon as it is there. Where the cap refuses a reservation, the run waits for what its own
    requests give back, and ends when none is left.
    """

    def __init__(
        self,
        backend: Backend,
        ledger: Ledger,
        evidence: OrderedEvidence,
        *,
        concurrency: int,
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
        )
        self._concurrency = concurrency
        self._evidence = evidence
        self._rules = StopRules(session)
        self._interrupts = interrupts

    def run(
        self, tasks: Iterable[Task], on_record: Callable[[Record], None] | None = None
    ) -> RunOutcome:
        """Attempt the tasks until the last one or a stop rule.

        Raises:
            Interrupted: a signal arrived; tasks whose wait was broken off keep their reservation.
        """
        crew = Crew(self._attempts, tasks, self._concurrency, self._interrupted)
        results = InOrder(self._evidence, self._rules, on_record)
        crew.start()
        try:
            while arrivals := crew.arrivals(self._waiting):
                results.take(arrivals)
                crew.placed(results.placed)
                if results.stop:
                    crew.send_no_more()
        except BaseException:
            results.keep(crew.abandon())
            raise
        finally:
            results.finish()
        if crew.error is not None:
            raise crew.error
        if results.stop is None and crew.cap_reached:
            return RunOutcome(results.attempted, StopReason.CAP_REACHED)
        if results.stop is None and crew.ledger_unavailable:
            return RunOutcome(results.attempted, StopReason.LEDGER_UNAVAILABLE)
        if results.stop is None and crew.left_some and self._interrupts:
            self._interrupts.check()
        return RunOutcome(results.attempted, results.stop)

    def _interrupted(self) -> bool:
        return self._interrupts is not None and self._interrupts.pending is not None

    def _waiting(self) -> AbstractContextManager[None]:
        return self._interrupts.asking() if self._interrupts else nullcontext()
