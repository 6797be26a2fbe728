"""What was paid: the rows of the run's own ledger."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from jevexp.core.json import loads
from jevexp.core.record import Record
from jevexp.harness.runner import NOT_SENT
from jevexp.harness.stops import StopReason
from jevexp.ledger.state import EPSILON_USD, LedgerState
from jevexp.store.directory import LEDGER, MANIFEST, RESULTS
from jevexp.verification.check import Check, is_number, same
from jevexp.verification.context import VerificationContext

_FIELDS = {
    "cap": {"event", "cap_usd", "ts"},
    "reserve": {"event", "reservation_id", "reserved_usd", "ts", "meta"},
    "settle": {"event", "reservation_id", "charged_usd", "ts", "meta"},
}
_META = {"reserve": {"task_id", "adapter"}, "settle": {"task_id", "basis"}}
# A stranger's run may have any number; what is read of each stays in memory.
MOST_RECORDS = 2_000_000


@dataclass(slots=True)
class Reservation:
    """What the ledger says about one task; `charged_usd` is null while it is in flight."""

    line: int
    id: str
    reserved_usd: float
    charged_usd: float | None = None
    basis: str | None = None


class Rows:
    """The check of the ledger's rows: one reservation a task, settled as recorded.

    Attributes:
        here: whether the run has rows of its own.
        by_task: the reservations by task id, in their order.
        cut_off: the tasks without a record that the protocol leaves behind: in flight when the run
            was cut off, or charged above their reservation.
        charged: what the reservations came to, those in flight in full, in US dollars.
    """

    def __init__(self, context: VerificationContext) -> None:
        self.check = Check(
            "ledger", "one reservation a task, settled as recorded, adding up to the charge"
        )
        self.here = LEDGER in context.tree.files
        self.by_task: dict[str, Reservation] = {}
        self.cut_off: set[str] = set()
        self.charged = Fraction(0)
        self._context = context
        self._cap_usd: float | None = None

    @property
    def overcharged(self) -> set[str]:
        """The tasks that were charged more than was reserved for them."""
        return {
            task_id
            for task_id, reservation in self.by_task.items()
            if reservation.charged_usd is not None
            and reservation.charged_usd > reservation.reserved_usd + EPSILON_USD
        }

    def check_against(
        self, records: Mapping[str, tuple[int, Record]], early: Collection[str]
    ) -> None:
        """Read the rows, and hold them against records and manifest.

        Args:
            records: line and record of every task that this run asked itself.
            early: tasks whose records were not in the results yet when the process was killed.
        """
        if not self.here:
            if records and not self._context.manifest.ledger.shared:
                self.check.fail(LEDGER, "is missing")
            else:
                self.check.reason = f"there is no {LEDGER}: the run has no rows of its own"
            return
        self._read()
        with self.check.guarded(LEDGER):
            self._check_records(records, early)
        self._check_manifest()

    def _read(self) -> None:
        """Read all rows, up to a torn last one."""
        books, check = LedgerState(), self.check
        lines = self._context.lines(LEDGER, check, "row", most=1 + 2 * MOST_RECORDS)
        with check.guarded(LEDGER):
            for number, line in lines:
                check.count += 1
                with check.guarded(LEDGER, line=number):
                    row = loads(line)
                    for fault in self._faults(row, number):
                        check.fail(LEDGER, fault, line=number)
                    books.add(row)
                    self._take(row, number)
        self.charged = books.charged

    def _faults(self, row: dict[str, Any], line: int) -> Iterator[str]:
        """What is wrong with a row by itself."""
        event = row["event"]
        if event not in _FIELDS:
            yield f"{event!r} is no event of a run"
        elif set(row) != _FIELDS[event] or not is_number(row["ts"]):
            yield f"not a row of the contract: {event}"
        elif event in _META:
            meta = set(row["meta"])
            # A person who releases a reservation says so, and maybe why.
            if row["meta"].get("basis") == "released":
                meta -= {"released_by", "reason"}
            if meta != _META[event]:
                yield f"meta: not that of a {event}"
        if event == "cap" and line != 1:
            yield "a cap stands in the first row alone"
        elif event != "cap" and line == 1:
            yield "the first row is the cap"
        if event == "reserve" and row["meta"]["adapter"] != self._context.manifest.backend.name:
            yield "meta.adapter: is not the run's backend"

    def _take(self, row: dict[str, Any], line: int) -> None:
        if row["event"] == "cap":
            self._cap_usd = row["cap_usd"]
            return
        task_id, reservation_id = row["meta"]["task_id"], row["reservation_id"]
        reservation = self.by_task.get(task_id)
        if row["event"] == "settle":
            if reservation is None or reservation.id != reservation_id:
                self.check.fail(LEDGER, "meta.task_id: is not the reservation's", line=line)
            else:
                reservation.charged_usd = row["charged_usd"]
                reservation.basis = row["meta"]["basis"]
        elif reservation is not None:
            self.check.fail(LEDGER, f"task {task_id!r} has a second reservation", line=line)
        else:
            self.by_task[task_id] = Reservation(line, reservation_id, row["reserved_usd"])

    def _check_records(
        self, records: Mapping[str, tuple[int, Record]], early: Collection[str]
    ) -> None:
        check = self.check
        for task_id, (line, record) in records.items():
            row = self.by_task.get(task_id)
            if row is None:
                check.fail(RESULTS, f"task {task_id!r} has no reservation in {LEDGER}", line=line)
            elif row.charged_usd is None:
                check.fail(
                    LEDGER, f"task {task_id!r} has a record and no settlement", line=row.line
                )
            elif (row.reserved_usd, row.charged_usd, row.basis) != (
                record.reserved_usd,
                record.charged_usd,
                record.cost_basis,
            ):
                message = f"reserved_usd, charged_usd or cost_basis: not as in {LEDGER}:{row.line}"
                check.fail(RESULTS, message, line=line)
        if [task_id for task_id in self.by_task if task_id in records] != list(records):
            check.fail(LEDGER, "the reservations are in another order than the records")
        missing = [task for task in self.by_task if task not in records and task not in early]
        self.cut_off = self._explained(missing)
        for task_id in missing:
            if task_id not in self.cut_off:
                message = f"task {task_id!r} has a reservation and no record, and nothing says why"
                check.fail(LEDGER, message, line=self.by_task[task_id].line)

    def _explained(self, missing: list[str]) -> set[str]:
        """The reservations without a record that the protocol leaves behind."""
        context, rows = self._context, self.by_task
        reason, at_once = context.manifest.stop_reason, context.manifest.concurrency
        planned = [task for task in missing if context.tasks is None or task in context.places]
        # Made ahead for a request that was never sent.
        given_back = {
            task
            for task in planned
            if at_once > 1 and rows[task].charged_usd == 0 and rows[task].basis == NOT_SENT
        }
        if reason == StopReason.OVERCHARGED:
            return given_back | (self.overcharged & set(planned))
        if not (context.cut_off or reason == StopReason.LEDGER_UNAVAILABLE):
            return given_back
        unexplained = [task for task in planned if task not in given_back]
        if at_once == 1:
            # One after the other, only the last one can have been in flight.
            return set(unexplained) if unexplained == list(rows)[-1:] else set()
        # In flight, reserved ahead, and answered without a record yet.
        return given_back.union(unexplained) if len(unexplained) <= 3 * at_once else given_back

    def _check_manifest(self) -> None:
        if self._context.manifest.finished is None:
            return
        stored, charged_usd = self._context.manifest.ledger, float(self.charged)
        self.check.count += 1
        if not same(stored.charged_by_run_usd, charged_usd):
            self.check.fail(
                MANIFEST,
                f"ledger.charged_by_run_usd: {stored.charged_by_run_usd!r}, the rows add up to "
                f"{charged_usd!r}",
            )
        if not stored.shared and stored.charged_usd != stored.charged_by_run_usd:
            message = "ledger.charged_usd: nobody else charges a ledger that is not shared"
            self.check.fail(MANIFEST, message)
        if stored.charged_usd < stored.charged_by_run_usd - EPSILON_USD:
            self.check.fail(MANIFEST, "ledger.charged_usd: less than this run's own charge")
        if self._cap_usd is not None and not same(stored.cap_usd, self._cap_usd):
            self.check.fail(MANIFEST, f"ledger.cap_usd: is not the cap in {LEDGER}:1")
