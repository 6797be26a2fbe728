"""Runs tasks through the pinned harness's own Runner and Ledger, around one of our backends."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from jevexp.backends.protocol import Estimates, Prepares
from jevexp.core.decision import Request
from jevexp.core.json import dumps, loads, representable
from jevexp.core.record import Record, Summary
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.harness.runner import RunContext, RunOutcome
from jevexp.harness.stops import StopReason, StopRules
from jevexp.harness.upstream_package import Package
from jevexp.ledger.file import FileLedger
from jevexp.settings import PINNED_COMMIT
from jevexp.untrusted.files import opened, whole_lines

# The harness opens its results exclusively, and ours are open already.
RESULTS = "upstream/results.jsonl"


class Upstream:
    """The pinned harness's Runner, Ledger, tasks and summary, from its own package."""

    def __init__(self, package: Package) -> None:
        self._package = package

    def describe(self) -> dict[str, Any]:
        """Its name, its commit, and whether it is installed or a checkout."""
        origin = self._package.location.origin
        return {"name": "upstream", "commit": PINNED_COMMIT, "origin": origin}

    def check(self, tasks: Sequence[Task]) -> None:
        """Convert the tasks to its own, which checks them again.

        Raises InputError: it refuses one; names that.
        """
        their_tasks(self._package, tasks)

    def runner(self, run: RunContext) -> "UpstreamRunner":
        """Its runner, around one of our backends; raises InputError: the ledger is not a file."""
        if not isinstance(run.ledger, FileLedger):
            raise InputError("caps.ledger_url: the pinned harness keeps its ledger in a file")
        return UpstreamRunner(self._package, run, run.ledger)

    def summarize(
        self, tasks: Sequence[Task], records: Iterable[Record], *, ledger_charged_usd: float | None
    ) -> Summary:
        """Its summary.

        Raises ValueError: a task has two records, or a record belongs to no planned task.
        """
        theirs = their_tasks(self._package, tasks)
        lines = [record.line() for record in records]
        summary = self._package.summarize(theirs, lines, ledger_charged_usd)
        return Summary.model_validate(loads(dumps(summary)))


def their_tasks(package: Package, tasks: Sequence[Task]) -> list[Any]:
    """The tasks as the harness's own, which checks them again.

    Raises InputError: naming the task that the harness refuses.
    """
    theirs = []
    for task in tasks:
        try:
            theirs.append(package.Task.from_dict(task.canonical()))
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(f"task {task.id!r}: the pinned harness refuses it: {error}") from error
    return theirs


def read_record(line: bytes) -> Record:
    """A record from a line of the harness's own results.

    Raises ValueError, KeyError, TypeError: the line is not a record.
    """
    fields = loads(line)
    if not isinstance(fields["runtime"], dict):
        # The harness copies whatever a provider's answer has under that name.
        fields["runtime"] = None
    return Record.model_validate(fields)


class UpstreamRunner:
    """The pinned harness over one provider.

    It writes its ledger rows, raw evidence and results itself. Each record that it has written is
    taken over into the run's results before the next task starts.
    """

    def __init__(self, package: Package, run: RunContext, ledger: FileLedger) -> None:
        self._package = package
        self._run = run
        self._ledger = ledger
        self._results = run.files.path / RESULTS
        self._position = 0
        self._rules = StopRules(run.expected, bodies=False)
        self._stop: StopReason | None = None
        self._attempted = 0

    def run(
        self, tasks: Sequence[Task], on_record: Callable[[Record], None] | None = None
    ) -> RunOutcome:
        """Attempt the tasks in order until the last one or a stop rule.

        Raises:
            InputError: the harness refuses a task, or a place to write to; nothing was asked.
            Interrupted: a signal arrived; a task whose wait was broken off keeps its reservation.
        """
        run, package = self._run, self._package

        def next_task() -> None:
            self._take(on_record)
            if run.interrupts:
                run.interrupts.check()

        theirs = their_tasks(package, tasks)
        kind = PreparingAdapter if isinstance(run.backend, Prepares) else Adapter
        adapter = kind(run, tasks, result=package.DecisionResult, next_task=next_task)
        if run.files.path.resolve().is_relative_to(package.location.root):
            raise InputError(
                f"{run.files.path}: the harness writes nothing into its own folder "
                f"{package.location.root}; set outputs=FOLDER"
            )
        ledger = package.Ledger(self._ledger.path, cap_usd=self._ledger.cap_usd)
        runner = package.Runner(
            adapter,
            _Adopted(ledger, self._ledger),
            raw_dir=run.files.raw,
            default_reserve_usd=run.reserve_usd,
        )
        with suppress(_IdentityChanged):
            runner.run_all(theirs, results_path=self._results)
            self._take(on_record)
        # The harness only prints why it stopped.
        if self._stop is None and self._attempted < len(tasks):
            # A charge above its reservation drops the record of a task that was asked.
            dropped = adapter.asked > self._attempted
            self._stop = StopReason.OVERCHARGED if dropped else StopReason.CAP_REACHED
        return RunOutcome(self._attempted, self._stop)

    def _take(self, on_record: Callable[[Record], None] | None) -> None:
        """Take over the records that the harness has written since the last look."""
        for line in self._new_lines():
            record = read_record(line)
            self._run.files.append(record)
            self._attempted += 1
            if on_record:
                on_record(record)
            self._stop = self._rules.after(record)
            if self._stop is StopReason.IDENTITY_CHANGED:
                raise _IdentityChanged

    def _new_lines(self) -> Iterator[bytes]:
        if not self._results.exists():
            return
        with opened(self._results, follow_links=False) as file:
            file.seek(self._position)
            for _, line in whole_lines(file):
                self._position += len(line)
                yield line


class _IdentityChanged(Exception):
    """Another model answered than the session's; our rule, not the harness's."""


class Adapter:
    """Has the attributes that the harness reads, and hands everything to a backend.

    `cost_basis` is there only where one is known, since the harness has its own word for that.
    `asked` counts the tasks that were put to the backend.

    Args:
        run: the open provider, its tariff, and what surrounds a wait for it.
        tasks: ours; the harness hands over its own, which hold gold labels.
        result: the harness's DecisionResult.
        next_task: called before each reservation; an exception from it ends the run.
    """

    def __init__(
        self, run: RunContext, tasks: Iterable[Task], *, result: Any, next_task: Callable[[], None]
    ) -> None:
        self.name = run.backend.name
        self.price_input_per_m = run.tariff.input_per_m
        self.price_output_per_m = run.tariff.output_per_m
        if run.tariff.basis is not None:
            self.cost_basis = run.tariff.basis
        self.asked = 0
        self._backend = run.backend
        self._requests = {task.id: Request.of(task, run.model) for task in tasks}
        self._result = result
        self._next_task = next_task
        self._waiting = run.waiting

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
        raw = representable(decision.response)
        if decision.runtime is not None and isinstance(raw, dict):
            # The harness looks for it there.
            raw["runtime"] = representable(decision.runtime)
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
            raw=raw,
        )


class PreparingAdapter(Adapter):
    """An adapter of a backend that has work to do before the clock starts."""

    def prepare(self, task: Any) -> None:
        """Do that work; what goes wrong is not told, since the harness would print it."""
        if isinstance(self._backend, Prepares):
            with suppress(Exception), self._waiting():
                self._backend.prepare(self._requests[task.id])


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
