"""Runs tasks through the pinned harness's own Runner and Ledger."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from jevexp.backends.protocol import Backend, Prepares
from jevexp.core.decision import Request
from jevexp.core.json import loads
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.harness.choose import Folder
from jevexp.harness.interrupts import Interrupts
from jevexp.harness.runner import RunOutcome
from jevexp.harness.session import SessionModel
from jevexp.harness.stops import (
    MAX_FAILURES_IN_A_ROW,
    STOP_STATUSES,
    UNPROCESSABLE,
    StopReason,
)
from jevexp.harness.tariff import Tariff
from jevexp.harness.upstream.adapter import Adapter, PreparingAdapter
from jevexp.harness.upstream.package import Package
from jevexp.ledger import FileLedger
from jevexp.untrusted.files import opened, whole_lines

# The harness opens its results exclusively, and ours are open already.
RESULTS = "upstream/results.jsonl"


class UpstreamRunner:
    """The pinned harness over one provider; the arguments are those of our own `Runner`.

    It writes its ledger rows, raw evidence and results itself. Each record that it has written is
    taken over into the run's results before the next task starts.
    """

    def __init__(
        self,
        package: Package,
        backend: Backend,
        ledger: FileLedger,
        folder: Folder,
        *,
        model: str,
        tariff: Tariff,
        reserve_usd: float,
        session: SessionModel | None = None,
        interrupts: Interrupts | None = None,
    ) -> None:
        self._package = package
        self._backend = backend
        self._ledger = ledger
        self._folder = folder
        self._model = model
        self._tariff = tariff
        self._reserve_usd = reserve_usd
        self._session = session
        self._interrupts = interrupts
        self._written = _Lines(folder.path / RESULTS)
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
            self._runner(adapter).run_all(theirs, results_path=self._folder.path / RESULTS)
            self._take(on_record)
        except _IdentityChanged:
            return RunOutcome(len(self._records), StopReason.IDENTITY_CHANGED)
        return RunOutcome(len(self._records), self._stop_reason(len(tasks), adapter.asked))

    def _runner(self, adapter: Adapter) -> Any:
        package = self._package
        if self._folder.path.resolve().is_relative_to(package.location.root):
            raise InputError(
                f"{self._folder.path}: the harness writes nothing into its own folder "
                f"{package.location.root}; set outputs=FOLDER"
            )
        ledger = package.Ledger(self._ledger.path, cap_usd=self._ledger.cap_usd)
        return package.Runner(
            adapter,
            _Adopted(ledger, self._ledger),
            raw_dir=self._folder.raw,
            default_reserve_usd=self._reserve_usd,
        )

    def _adapter(self, tasks: Sequence[Task], next_task: Callable[[], None]) -> Adapter:
        kind = PreparingAdapter if isinstance(self._backend, Prepares) else Adapter
        return kind(
            self._backend,
            {task.id: Request.of(task, self._model) for task in tasks},
            self._tariff,
            result=self._package.DecisionResult,
            next_task=next_task,
            waiting=self._waiting,
        )

    def _next_task(self, on_record: Callable[[Record], None] | None) -> None:
        self._take(on_record)
        if self._interrupts:
            self._interrupts.check()

    def _take(self, on_record: Callable[[Record], None] | None) -> None:
        """Take over the records that the harness has written since the last look."""
        for line in self._written.new():
            fields = loads(line)
            if not isinstance(fields["runtime"], dict):
                # The harness copies whatever a provider's answer has under that name.
                fields["runtime"] = None
            record = Record.model_validate(fields)
            self._folder.append(record)
            self._records.append(record)
            if on_record:
                on_record(record)
            if self._session is not None and not self._session.accepts(record):
                raise _IdentityChanged

    def _waiting(self) -> AbstractContextManager[None]:
        return self._interrupts.asking() if self._interrupts else nullcontext()

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
