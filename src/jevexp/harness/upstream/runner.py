"""Runs tasks through the pinned harness's own Runner and Ledger."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from jevexp.backends.protocol import Backend, Estimates, Prepares
from jevexp.core.decision import Decision, Request
from jevexp.core.json import loads, representable
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.harness.runner import RunOutcome
from jevexp.harness.steps import RunContext, Tariff
from jevexp.harness.stops import (
    MAX_FAILURES_IN_A_ROW,
    STOP_STATUSES,
    UNPROCESSABLE,
    StopReason,
)
from jevexp.harness.upstream.package import Package
from jevexp.ledger import FileLedger
from jevexp.untrusted.files import opened, whole_lines

# The harness opens its results exclusively, and ours are open already.
RESULTS = "upstream/results.jsonl"


class Adapter:
    """Has the attributes that the harness reads, and hands everything to a backend.

    `cost_basis` is there only where one is known, since the harness has its own word for that.
    `asked` counts the tasks that were put to the backend.

    Args:
        backend: an open provider.
        requests: what is asked for each task id; the harness's tasks hold gold labels as well.
        tariff: prices in US dollars per million tokens.
        result: the harness's DecisionResult.
        next_task: called before each reservation; an exception from it ends the run.
        waiting: entered while the provider is waited for.
    """

    def __init__(
        self,
        backend: Backend,
        requests: Mapping[str, Request],
        tariff: Tariff,
        *,
        result: Any,
        next_task: Callable[[], None],
        waiting: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.name = backend.name
        self.price_input_per_m = tariff.input_per_m
        self.price_output_per_m = tariff.output_per_m
        if tariff.basis is not None:
            self.cost_basis = tariff.basis
        self.asked = 0
        self._backend = backend
        self._requests = requests
        self._result = result
        self._next_task = next_task
        self._waiting = waiting

    def reserve_estimate(self, task: Any) -> float | None:
        """The backend's own estimate in US dollars, or None."""
        self._next_task()
        if not isinstance(self._backend, Estimates):
            return None
        return self._backend.reserve_estimate(self._requests[task.id])

    def run(self, task: Any) -> Any:
        """Ask once; an exception goes on to the harness, which keeps its class name only."""
        self.asked += 1
        with self._waiting():
            decision = self._backend.decide(self._requests[task.id])
        return self._result(
            adapter=self.name,
            ok=decision.ok,
            probs=representable(decision.probs),
            probs_source=decision.probs_source.value,
            label=decision.label,
            model=representable(decision.model),
            status=decision.status_code,
            error=decision.error,
            usage=representable(decision.usage),
            request_body=representable(decision.request),
            raw=_raw(decision),
        )


class PreparingAdapter(Adapter):
    """Of a backend that has work to do before the clock starts."""

    def prepare(self, task: Any) -> None:
        """Do that work; what goes wrong is not told, since the harness would print it."""
        if isinstance(self._backend, Prepares):
            with suppress(Exception), self._waiting():
                self._backend.prepare(self._requests[task.id])


def _raw(decision: Decision) -> Any:
    """What came back, with `runtime` where the harness looks for it."""
    raw = representable(decision.response)
    if decision.runtime is not None and isinstance(raw, dict):
        raw["runtime"] = representable(decision.runtime)
    return raw


class UpstreamRunner:
    """The pinned harness over one provider.

    It writes its ledger rows, raw evidence and results itself. Each record that it has written is
    taken over into the run's results before the next task starts.
    """

    def __init__(self, package: Package, run: RunContext, ledger: FileLedger) -> None:
        self._package = package
        self._run = run
        self._ledger = ledger
        self._written = _Lines(run.files.path / RESULTS)
        self._records: list[Record] = []

    def run(
        self, tasks: Sequence[Task], on_record: Callable[[Record], None] | None = None
    ) -> RunOutcome:
        """Attempt the tasks in order until the last one or a stop rule.

        Raises:
            InputError: the harness refuses a task, or a place to write to; nothing was asked.
            Interrupted: a signal arrived; a task whose wait was broken off keeps its reservation.
        """
        theirs = their_tasks(self._package, tasks)
        adapter = self._adapter(tasks, lambda: self._next_task(on_record))
        try:
            self._runner(adapter).run_all(theirs, results_path=self._run.files.path / RESULTS)
            self._take(on_record)
        except _IdentityChanged:
            return RunOutcome(len(self._records), StopReason.IDENTITY_CHANGED)
        return RunOutcome(len(self._records), self._stop_reason(len(tasks), adapter.asked))

    def _runner(self, adapter: Adapter) -> Any:
        package = self._package
        if self._run.files.path.resolve().is_relative_to(package.location.root):
            raise InputError(
                f"{self._run.files.path}: the harness writes nothing into its own folder "
                f"{package.location.root}; set outputs=FOLDER"
            )
        ledger = package.Ledger(self._ledger.path, cap_usd=self._ledger.cap_usd)
        return package.Runner(
            adapter,
            _Adopted(ledger, self._ledger),
            raw_dir=self._run.files.raw,
            default_reserve_usd=self._run.reserve_usd,
        )

    def _adapter(self, tasks: Sequence[Task], next_task: Callable[[], None]) -> Adapter:
        kind = PreparingAdapter if isinstance(self._run.backend, Prepares) else Adapter
        return kind(
            self._run.backend,
            {task.id: Request.of(task, self._run.model) for task in tasks},
            self._run.tariff,
            result=self._package.DecisionResult,
            next_task=next_task,
            waiting=self._run.waiting,
        )

    def _next_task(self, on_record: Callable[[Record], None] | None) -> None:
        self._take(on_record)
        if self._run.interrupts:
            self._run.interrupts.check()

    def _take(self, on_record: Callable[[Record], None] | None) -> None:
        """Take over the records that the harness has written since the last look."""
        for line in self._written.new():
            fields = loads(line)
            if not isinstance(fields["runtime"], dict):
                # The harness copies whatever a provider's answer has under that name.
                fields["runtime"] = None
            record = Record.model_validate(fields)
            self._run.files.append(record)
            self._records.append(record)
            if on_record:
                on_record(record)
            if self._run.expected is not None and not self._run.expected.accepts(record):
                raise _IdentityChanged

    def _stop_reason(self, planned: int, asked: int) -> StopReason | None:
        """Which rule ended the run, by what it left behind; the harness only prints it."""
        status = self._records[-1].status_code if self._records else None
        if status in STOP_STATUSES:
            return StopReason.RATE_LIMITED if status == 429 else StopReason.ACCESS_REFUSED
        if self._failures() >= MAX_FAILURES_IN_A_ROW:
            return StopReason.FAILURES_IN_A_ROW
        if len(self._records) == planned:
            return None
        # A charge above its reservation drops the record of a task that was asked.
        return StopReason.OVERCHARGED if asked > len(self._records) else StopReason.CAP_REACHED

    def _failures(self) -> int:
        count = 0
        for record in reversed(self._records):
            if record.ok or record.status_code == UNPROCESSABLE:
                break
            count += 1
        return count


def their_tasks(package: Package, tasks: Sequence[Task]) -> list[Any]:
    """The tasks as the harness's own, which checks them again.

    Raises:
        InputError: naming the task that the harness refuses.
    """
    theirs = []
    for task in tasks:
        try:
            theirs.append(package.Task.from_dict(task.canonical()))
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(f"task {task.id!r}: the pinned harness refuses it: {error}") from error
    return theirs


class _IdentityChanged(Exception):
    """Another model answered than the session's; our rule, not the harness's."""


class _Adopted:
    """The harness's own ledger; ours counts and keeps what it writes as this run's."""

    def __init__(self, theirs: Any, ours: FileLedger) -> None:
        self._theirs = theirs
        self._ours = ours

    def reserve(self, *arguments: Any, **named: Any) -> Any:
        reservation_id = self._theirs.reserve(*arguments, **named)
        self._ours.adopt(reservation_id)
        return reservation_id

    def settle(self, *arguments: Any, **named: Any) -> Any:
        try:
            return self._theirs.settle(*arguments, **named)
        finally:
            # A charge above its reservation is written before it is raised.
            self._ours.catch_up()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._theirs, name)


class _Lines:
    """The complete lines that were appended to a file since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0

    def new(self) -> Iterator[bytes]:
        if not self._path.exists():
            return
        with opened(self._path, follow_links=False) as file:
            file.seek(self._position)
            for _, line in whole_lines(file):
                self._position += len(line)
                yield line
