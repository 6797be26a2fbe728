"""One task's attempt in its steps: reserve, ask, keep."""

import hashlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Protocol

from jevexp.backends.protocol import Backend, Estimates, Prepares
from jevexp.core.decision import Decision, ProbsSource, Request
from jevexp.core.json import dumps, representable
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness.scoring import score
from jevexp.harness.tariff import Tariff
from jevexp.ledger import Ledger


class Evidence(Protocol):
    """Where a run leaves what happened; raw evidence and records are durable on return."""

    def hold(self, record: Record, raw: str) -> None:
        """Keep an answer that has no record yet, so that a killed process does not lose it."""

    def write_raw(self, task_id: str, text: str) -> str:
        """Keep a task's request and response; returns the SHA-256 of the bytes."""

    def append(self, record: Record) -> None:
        """Append a record to the results."""


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


class Attempts:
    """The steps of every task, in the benchmark's order.

    Args:
        backend: an open provider.
        ledger: the cap that every request reserves from.
        evidence: where raw evidence goes.
        model: the model that is requested.
        tariff: prices, for the cost of an answer.
        reserve_usd: what a request reserves at least, in US dollars.
        clock: seconds, for latencies.
        now: seconds since the epoch, for the records' `ts`.
        waiting: what surrounds every wait for the provider.
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
        clock: Callable[[], float] = time.perf_counter,
        now: Callable[[], float] = time.time,
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._backend = backend
        self._ledger = ledger
        self._evidence = evidence
        self._model = model
        self._tariff = tariff
        self._reserve_usd = reserve_usd
        self._clock = clock
        self._now = now
        self._waiting = waiting
        self._estimates = backend if isinstance(backend, Estimates) else None
        self._prepares = backend if isinstance(backend, Prepares) else None

    def reserve(self, task: Task) -> Reserved:
        """Set aside what the request may cost.

        Raises:
            CapReached: it would pass the cap; the request must not be sent.
        """
        request = Request.of(task, self._model)
        usd = self._amount_to_reserve(request)
        meta = {"task_id": task.id, "adapter": self._backend.name}
        return Reserved(task, request, self._ledger.reserve(usd, meta), usd)

    def ask(self, reserved: Reserved) -> Answered:
        """Ask once; whatever the provider raises is an answer that is not ok."""
        prepare_s = self._prepare(reserved.request)
        started = self._clock()
        decision = self._decide(reserved.request)
        return Answered(reserved, decision, self._clock() - started, prepare_s)

    def keep(self, answered: Answered) -> Record:
        """Score, keep the raw evidence and settle the reservation; the record is only held yet.

        Raises:
            Overcharged: the cost is above the reservation; there is no record then.
        """
        reserved, decision = answered.reserved, answered.decision
        task = reserved.task
        raw = _raw(decision)
        cost_usd, cost_basis = self._tariff.cost(decision)
        charged = reserved.usd if cost_usd is None else cost_usd
        verdict = score(task, decision)
        record = Record(
            task_id=task.id,
            family=task.family,
            split=task.split,
            group=task.group,
            ts=self._now(),
            status="ok" if decision.ok else "failed",
            ok=decision.ok,
            valid=verdict.valid,
            correct=verdict.correct,
            predicted=verdict.predicted,
            ordinal_ev=verdict.ordinal_ev,
            probs=verdict.probs,
            probs_as_returned=representable(decision.probs) if decision.ok else None,
            strict_valid=verdict.strict_valid,
            renormalized=verdict.renormalized,
            probs_source=decision.probs_source,
            model=representable(decision.model),
            error=decision.error,
            schema_error=verdict.schema_error,
            status_code=decision.status_code,
            latency_s=answered.latency_s,
            usage=representable(decision.usage),
            cost_usd=cost_usd,
            cost_basis=cost_basis,
            reserved_usd=reserved.usd,
            charged_usd=charged,
            raw_sha256=hashlib.sha256(raw.encode()).hexdigest(),
            runtime=representable(decision.runtime),
            prepare_s=answered.prepare_s,
        )
        self._evidence.hold(record, raw)
        self._evidence.write_raw(task.id, raw)
        meta = {"task_id": task.id, "basis": cost_basis}
        self._ledger.settle(reserved.reservation, charged, meta)
        return record

    def release(self, reserved: Reserved) -> None:
        """Give back what was set aside for a request that was not sent."""
        meta = {"task_id": reserved.task.id, "basis": NOT_SENT}
        self._ledger.settle(reserved.reservation, 0.0, meta)

    def _amount_to_reserve(self, request: Request) -> float:
        estimate = self._estimates.reserve_estimate(request) if self._estimates else None
        return self._reserve_usd if estimate is None else max(self._reserve_usd, estimate)

    def _prepare(self, request: Request) -> float | None:
        """Let the provider prepare; how long it took in seconds, None where it never does."""
        if self._prepares is None:
            return None
        started = self._clock()
        # The request itself will show whether a failure here matters.
        with suppress(Exception), self._waiting():
            self._prepares.prepare(request)
        return self._clock() - started

    def _decide(self, request: Request) -> Decision:
        try:
            with self._waiting():
                return self._backend.decide(request)
        except Exception as error:  # noqa: BLE001  a provider may raise anything; none stops a run
            # The class name only: a message may hold an address, a path or a key.
            return Decision(
                ok=False,
                model="",
                probs_source=ProbsSource.UNKNOWN,
                error=type(error).__name__,
            )


# What a settlement says whose request was reserved for and then not sent.
NOT_SENT = "not_sent"


def _raw(decision: Decision) -> str:
    """Raw evidence: what was sent, what came back, and the HTTP status where there was one."""
    return dumps(
        {
            "request": representable(decision.request),
            "response": representable(decision.response),
            "http_status": decision.status_code,
        }
    )
