"""One task in its steps: reserve, ask, keep; and what a run needs for them."""

import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from jevexp.backends.protocol import Backend, Estimates, Prepares
from jevexp.core.decision import Decision, ProbsSource, Request
from jevexp.core.json import dumps, representable
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness.interrupts import Interrupts
from jevexp.harness.scoring import score
from jevexp.harness.stops import ExpectedModel
from jevexp.ledger import Ledger

# Up to here every whole number is a float; nothing real counts as many tokens.
MOST_TOKENS = 2**53
# What a settlement says whose request was reserved for and then not sent.
NOT_SENT = "not_sent"


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


class RunFiles(Protocol):
    """Where a run leaves what happened; raw evidence and records are durable on return."""

    @property
    def path(self) -> Path:
        """The run's directory, for a harness that writes files of its own."""

    @property
    def raw(self) -> Path:
        """The folder of raw evidence inside it."""

    def hold(self, record: Record, raw: str) -> None:
        """Keep an answer that has no record yet, so that a killed process does not lose it."""

    def write_raw(self, task_id: str, text: str) -> str:
        """Keep a task's request and response; returns the SHA-256 of the bytes."""

    def append(self, record: Record) -> None:
        """Append a record to the results."""

    def append_all(self, records: Sequence[Record]) -> None:
        """Append records to the results."""

    def append_early(self, records: Sequence[Record]) -> None:
        """Keep records that wait for the ones before them; each is appended later as well."""

    def drop_early(self) -> None:
        """Forget the early records, which are all in the results by now."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """Everything that a run needs while it asks.

    Attributes:
        backend: an open provider.
        ledger: the cap that every request reserves from.
        files: where records and raw evidence go.
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
    files: RunFiles
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
    """The steps of every task, in the benchmark's order.

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
        """
        request = Request.of(task, self._run.model)
        usd = self._amount_to_reserve(request)
        meta = {"task_id": task.id, "adapter": self._run.backend.name}
        return Reserved(task, request, self._run.ledger.reserve(usd, meta), usd)

    def ask(self, reserved: Reserved) -> Answered:
        """Ask once; whatever the provider raises is an answer that is not ok."""
        prepare_s = self._prepare(reserved.request)
        started = self._run.clock()
        decision = self._decide(reserved.request)
        return Answered(reserved, decision, self._run.clock() - started, prepare_s)

    def keep(self, answered: Answered) -> Record:
        """Score, keep the raw evidence and settle the reservation; the record is only held yet.

        Raises:
            Overcharged: the cost is above the reservation; there is no record then.
        """
        reserved, decision = answered.reserved, answered.decision
        task = reserved.task
        raw = _raw(decision)
        cost_usd, cost_basis = self._run.tariff.cost(decision)
        charged = reserved.usd if cost_usd is None else cost_usd
        given = score(task, decision)
        record = Record(
            task_id=task.id,
            family=task.family,
            split=task.split,
            group=task.group,
            ts=self._run.now(),
            status="ok" if decision.ok else "failed",
            ok=decision.ok,
            valid=given.valid,
            correct=given.correct,
            predicted=given.predicted,
            ordinal_ev=given.ordinal_ev,
            probs=given.probs,
            probs_as_returned=representable(decision.probs) if decision.ok else None,
            strict_valid=given.strict_valid,
            renormalized=given.renormalized,
            probs_source=decision.probs_source,
            model=representable(decision.model),
            error=decision.error,
            schema_error=given.schema_error,
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
        self._run.files.hold(record, raw)
        self._run.files.write_raw(task.id, raw)
        meta = {"task_id": task.id, "basis": cost_basis}
        self._run.ledger.settle(reserved.reservation, charged, meta)
        return record

    def release(self, reserved: Reserved) -> None:
        """Give back what was set aside for a request that was not sent."""
        meta = {"task_id": reserved.task.id, "basis": NOT_SENT}
        self._run.ledger.settle(reserved.reservation, 0.0, meta)

    def _amount_to_reserve(self, request: Request) -> float:
        estimate = self._estimates.reserve_estimate(request) if self._estimates else None
        return self._run.reserve_usd if estimate is None else max(self._run.reserve_usd, estimate)

    def _prepare(self, request: Request) -> float | None:
        """Let the provider prepare; how long it took in seconds, None where it never does."""
        if self._prepares is None:
            return None
        started = self._run.clock()
        # The request itself will show whether a failure here matters.
        with suppress(Exception), self._waiting():
            self._prepares.prepare(request)
        return self._run.clock() - started

    def _decide(self, request: Request) -> Decision:
        try:
            with self._waiting():
                return self._run.backend.decide(request)
        except Exception as error:  # noqa: BLE001  a provider may raise anything; none stops a run
            # The class name only: a message may hold an address, a path or a key.
            return Decision(
                ok=False,
                model="",
                probs_source=ProbsSource.UNKNOWN,
                error=type(error).__name__,
            )


def _raw(decision: Decision) -> str:
    """Raw evidence: what was sent, what came back, and the HTTP status where there was one."""
    return dumps(
        {
            "request": representable(decision.request),
            "response": representable(decision.response),
            "http_status": decision.status_code,
        }
    )


def _number(value: Any) -> float | None:
    """A count as reported, or None for anything that cannot be a count."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value <= MOST_TOKENS else None
