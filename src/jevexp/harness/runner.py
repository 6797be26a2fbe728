"""Asks one task after the other, exactly as the benchmark's protocol says."""

import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from jevexp.backends.protocol import Backend, Estimates, Prepares
from jevexp.core.decision import Decision, ProbsSource, Request
from jevexp.core.json import dumps, representable
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness.interrupts import Interrupts
from jevexp.harness.scoring import score
from jevexp.harness.stops import ExpectedModel, StopReason, StopRules
from jevexp.ledger.base import Ledger
from jevexp.ledger.state import CapReached, LedgerUnavailable, Overcharged
from jevexp.settings.run import REPORTED_COST
from jevexp.store import RunDirectory

log = logging.getLogger(__name__)

# Up to here every whole number is a float; nothing real counts as many tokens.
MOST_TOKENS = 2**53
# No answer costs as much, and a record holds no more.
_MOST_USD = 1e15
# The basis of a settlement whose request was reserved for and then not sent.
NOT_SENT = "not_sent"


@dataclass(frozen=True, slots=True)
class Tariff:
    """Prices in US dollars per million tokens, null where unknown, and what a cost means."""

    input_per_m: float | None = None
    output_per_m: float | None = None
    basis: str | None = None

    def cost(self, decision: Decision) -> tuple[float | None, str]:
        """The decision's cost in US dollars, or None, and the basis of that statement."""
        if self.basis == REPORTED_COST:
            return _reported(decision.usage.get("cost"), _MOST_USD), REPORTED_COST
        if self.input_per_m == 0 and self.output_per_m == 0:
            return 0.0, self.basis or "zero_route_fee_compute_excluded"
        tokens_in = _reported(decision.usage.get("input_tokens"), MOST_TOKENS)
        tokens_out = _reported(decision.usage.get("output_tokens"), MOST_TOKENS)
        if (
            decision.ok
            and self.input_per_m is not None
            and self.output_per_m is not None
            and tokens_in is not None
            and tokens_out is not None
        ):
            cost = tokens_in * self.input_per_m / 1e6 + tokens_out * self.output_per_m / 1e6
            return cost, "derived_usage_times_tariff"
        return None, self.basis or "unknown"


def _reported(number: Any, most: float) -> float | None:
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    return number if 0 <= number <= most else None


@dataclass(frozen=True, slots=True)
class RunContext:
    """Everything that a run needs while it asks.

    Attributes:
        backend: an open provider.
        ledger: the cap that every request reserves from.
        files: where records and raw evidence go, durably.
        model: the model that is requested.
        tariff: prices, for the cost of an answer.
        reserve_usd: what a request reserves at least, in US dollars.
        expected: the model that every answer has to come from, or None to let them differ.
        interrupts: holds signals back while evidence is written; None lets them through.
        clock: seconds, for latencies.
        now: seconds since the epoch, for the records' `ts`.
    """

    backend: Backend
    ledger: Ledger
    files: RunDirectory
    model: str
    tariff: Tariff
    reserve_usd: float
    expected: ExpectedModel | None = None
    interrupts: Interrupts | None = None
    clock: Callable[[], float] = time.perf_counter
    now: Callable[[], float] = time.time

    def waiting(self) -> AbstractContextManager[None]:
        """Surrounds every wait for the provider in the main thread."""
        return self.interrupts.asking() if self.interrupts else nullcontext()


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How many tasks have a record, and the rule that stopped the run."""

    attempted: int
    stop: StopReason | None


class Runner:
    """Has one task under way at a time."""

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
        for attempted, task in enumerate(tasks):
            if self._run.interrupts:
                self._run.interrupts.check()
            try:
                record = self._steps.keep(self._steps.ask(self._steps.reserve(task)))
            except CapReached:
                return RunOutcome(attempted, StopReason.CAP_REACHED)
            except LedgerUnavailable as error:
                log.error("%s", error)
                return RunOutcome(attempted, StopReason.LEDGER_UNAVAILABLE)
            except Overcharged:
                return RunOutcome(attempted, StopReason.OVERCHARGED)
            self._run.files.append(record)
            if on_record:
                on_record(record)
            if stop := self._rules.after(record):
                return RunOutcome(attempted + 1, stop)
        return RunOutcome(len(tasks), None)


@dataclass(frozen=True, slots=True)
class Reserved:
    """A task that may be sent: what it may cost is set aside, in US dollars."""

    task: Task
    request: Request
    reservation: str
    usd: float


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of asking; times are in seconds of wall clock."""

    reserved: Reserved
    decision: Decision
    latency_s: float
    prepare_s: float | None


class TaskSteps:
    """The steps of every task, in the benchmark's order: reserve, ask, keep.

    Args:
        run: what the run needs.
        waiting: what surrounds every wait for the provider.
    """

    def __init__(
        self, run: RunContext, *, waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        self._run = run
        self._waiting = waiting
        self._estimates = run.backend if isinstance(run.backend, Estimates) else None
        self._prepares = run.backend if isinstance(run.backend, Prepares) else None

    def reserve(self, task: Task) -> Reserved:
        """Set aside what the request may cost.

        Raises:
            CapReached: it would pass the cap; the request must not be sent.
            LedgerUnavailable: nobody can say whether it is set aside; the same holds.
        """
        request = Request.of(task, self._run.model)
        usd = self._run.reserve_usd
        if self._estimates and (estimate := self._estimates.reserve_estimate(request)) is not None:
            usd = max(usd, estimate)
        meta = {"task_id": task.id, "adapter": self._run.backend.name}
        return Reserved(task, request, self._run.ledger.reserve(usd, meta), usd)

    def ask(self, reserved: Reserved) -> Answered:
        """Ask once; whatever the provider raises is an answer that is not ok."""
        prepare_s = None
        if self._prepares:
            started = self._run.clock()
            # The request itself will show whether a failure here matters.
            with suppress(Exception), self._waiting():
                self._prepares.prepare(reserved.request)
            prepare_s = self._run.clock() - started
        started = self._run.clock()
        try:
            with self._waiting():
                decision = self._run.backend.decide(reserved.request)
        except Exception as error:  # noqa: BLE001  a provider may raise anything; none stops a run
            # The class name only: a message may hold an address, a path or a key.
            name = type(error).__name__
            decision = Decision(ok=False, model="", probs_source=ProbsSource.UNKNOWN, error=name)
        return Answered(reserved, decision, self._run.clock() - started, prepare_s)

    def keep(self, answered: Answered) -> Record:
        """Score, keep the raw evidence and settle the reservation; the record is only held yet.

        Raises Overcharged: the cost is above the reservation; there is no record then.
        """
        reserved, decision = answered.reserved, answered.decision
        task = reserved.task
        raw = dumps(
            {
                "request": representable(decision.request),
                "response": representable(decision.response),
                "http_status": decision.status_code,
            }
        )
        cost_usd, cost_basis = self._run.tariff.cost(decision)
        charged_usd = reserved.usd if cost_usd is None else cost_usd
        record = Record(
            task_id=task.id,
            family=task.family,
            split=task.split,
            group=task.group,
            ts=self._run.now(),
            status="ok" if decision.ok else "failed",
            ok=decision.ok,
            probs_as_returned=representable(decision.probs) if decision.ok else None,
            probs_source=decision.probs_source,
            model=representable(decision.model),
            error=decision.error,
            status_code=decision.status_code,
            latency_s=answered.latency_s,
            usage=representable(decision.usage),
            cost_usd=cost_usd,
            cost_basis=cost_basis,
            reserved_usd=reserved.usd,
            charged_usd=charged_usd,
            raw_sha256=hashlib.sha256(raw.encode()).hexdigest(),
            runtime=representable(decision.runtime),
            prepare_s=answered.prepare_s,
            **vars(score(task, decision)),
        )
        self._run.files.hold(record, raw)
        self._run.files.write_raw(task.id, raw)
        meta = {"task_id": task.id, "basis": cost_basis}
        self._run.ledger.settle(reserved.reservation, charged_usd, meta)
        return record

    def release(self, reserved: Reserved) -> None:
        """Give back what was set aside for a request that was not sent."""
        meta = {"task_id": reserved.task.id, "basis": NOT_SENT}
        self._run.ledger.settle(reserved.reservation, 0.0, meta)
