"""Puts tasks to a provider, one after the other, exactly as the benchmark's protocol says."""

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from jevexp.backends.protocol import Backend, Estimates, Prepares
from jevexp.domain.decision import Decision, ProbsSource, Request
from jevexp.domain.json import dumps, representable
from jevexp.domain.record import Record
from jevexp.domain.task import Task
from jevexp.harness.interrupts import Interrupts
from jevexp.harness.ledger import CapReached, Ledger, Overcharged
from jevexp.harness.scoring import score
from jevexp.harness.session import SessionModel

# The provider refuses us, or asks us to go away: more requests would only cost.
STOP_STATUSES = frozenset({401, 403, 429})
# The provider read the request and found it unanswerable: a wrong answer, not an outage.
UNPROCESSABLE = 422
MAX_FAILURES_IN_A_ROW = 3
# Up to here every whole number is a float; nothing real counts as many tokens.
MOST_TOKENS = 2**53


class StopReason(StrEnum):
    """Why a run ended before its last task."""

    CAP_REACHED = "cap_reached"
    OVERCHARGED = "overcharged"
    ACCESS_REFUSED = "access_refused"
    RATE_LIMITED = "rate_limited"
    FAILURES_IN_A_ROW = "failures_in_a_row"
    IDENTITY_CHANGED = "identity_changed"


@dataclass(frozen=True, slots=True)
class Tariff:
    """Prices in US dollars per million tokens, null where unknown, and what a cost means."""

    input_per_m: float | None = None
    output_per_m: float | None = None
    basis: str | None = None

    def cost(self, decision: Decision) -> tuple[float | None, str]:
        """The decision's cost in US dollars, or None, and the basis of that statement."""
        if self.input_per_m == 0 and self.output_per_m == 0:
            return 0.0, self.basis or "zero_route_fee_compute_excluded"
        tokens_in = _number(decision.usage.get("input_tokens"))
        tokens_out = _number(decision.usage.get("output_tokens"))
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


class Evidence(Protocol):
    """Where the runner leaves what happened; both calls are durable when they return."""

    def write_raw(self, task_id: str, text: str) -> str:
        """Keep a task's request and response; returns the SHA-256 of the bytes."""

    def append(self, record: Record) -> None:
        """Append a record to the results."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How far a run came. Tasks after `attempted` were never sent."""

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
        self._backend = backend
        self._ledger = ledger
        self._evidence = evidence
        self._model = model
        self._tariff = tariff
        self._reserve_usd = reserve_usd
        self._session = session
        self._clock = clock
        self._now = now
        self._interrupts = interrupts
        self._estimates = backend if isinstance(backend, Estimates) else None
        self._prepares = backend if isinstance(backend, Prepares) else None

    def run(
        self, tasks: Iterable[Task], on_record: Callable[[Record], None] | None = None
    ) -> RunOutcome:
        """Attempt the tasks in order until the last one or a stop rule.

        Raises:
            Interrupted: a signal arrived; a task whose wait was broken off keeps its reservation.
        """
        attempted = failures = 0
        for task in tasks:
            if self._interrupts:
                self._interrupts.check()
            try:
                record = self._attempt(task)
            except CapReached:
                return RunOutcome(attempted, StopReason.CAP_REACHED)
            except Overcharged:
                return RunOutcome(attempted, StopReason.OVERCHARGED)
            attempted += 1
            if on_record:
                on_record(record)
            failed = not record.ok and record.status_code != UNPROCESSABLE
            failures = failures + 1 if failed else 0
            if stop := _stop_reason(record, failures, self._session):
                return RunOutcome(attempted, stop)
        return RunOutcome(attempted, None)

    def _attempt(self, task: Task) -> Record:
        request = Request.of(task, self._model)
        reserved = self._amount_to_reserve(request)
        meta = {"task_id": task.id}
        reservation = self._ledger.reserve(reserved, meta | {"adapter": self._backend.name})
        prepare_s = self._prepare(request)
        started = self._clock()
        decision = self._decide(request)
        latency_s = self._clock() - started
        raw_sha256 = self._evidence.write_raw(task.id, _raw(decision))
        cost_usd, cost_basis = self._tariff.cost(decision)
        charged = reserved if cost_usd is None else cost_usd
        self._ledger.settle(reservation, charged, meta | {"basis": cost_basis})
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
            latency_s=latency_s,
            usage=representable(decision.usage),
            cost_usd=cost_usd,
            cost_basis=cost_basis,
            reserved_usd=reserved,
            charged_usd=charged,
            raw_sha256=raw_sha256,
            runtime=representable(decision.runtime),
            prepare_s=prepare_s,
        )
        self._evidence.append(record)
        return record

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

    def _waiting(self) -> AbstractContextManager[None]:
        return self._interrupts.asking() if self._interrupts else nullcontext()


def _raw(decision: Decision) -> str:
    """Raw evidence: what was sent, what came back, and the HTTP status where there was one."""
    return dumps(
        {
            "request": representable(decision.request),
            "response": representable(decision.response),
            "http_status": decision.status_code,
        }
    )


def _stop_reason(record: Record, failures: int, session: SessionModel | None) -> StopReason | None:
    if record.status_code in STOP_STATUSES:
        limited = record.status_code == 429
        return StopReason.RATE_LIMITED if limited else StopReason.ACCESS_REFUSED
    if failures >= MAX_FAILURES_IN_A_ROW:
        return StopReason.FAILURES_IN_A_ROW
    if session is not None and not session.accepts(record):
        return StopReason.IDENTITY_CHANGED
    return None


def _number(value: Any) -> float | None:
    """A count as reported, or None for anything that cannot be a count."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value <= MOST_TOKENS else None
