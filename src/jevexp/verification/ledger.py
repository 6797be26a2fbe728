"""What was paid: the cost of every answer, and the rows of the run's own ledger."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from jevexp.core.decision import Decision
from jevexp.core.json import loads
from jevexp.core.record import Record
from jevexp.harness import Tariff
from jevexp.harness.steps import NOT_SENT
from jevexp.harness.stops import StopReason
from jevexp.ledger.state import EPSILON_USD, LedgerError, LedgerState
from jevexp.store.directory import LEDGER, MANIFEST, RESULTS
from jevexp.untrusted.files import TooLong, numbered_lines, opened
from jevexp.verification.check import Check, same, shown
from jevexp.verification.context import VerificationContext

_FIELDS = {
    "cap": {"event", "cap_usd", "ts"},
    "reserve": {"event", "reservation_id", "reserved_usd", "ts", "meta"},
    "settle": {"event", "reservation_id", "charged_usd", "ts", "meta"},
}
_META = {"reserve": {"task_id", "adapter"}, "settle": {"task_id", "basis"}}
_LONGEST_ROW = 1 << 20
# Of a stranger's; what is read of each stays in memory.
MOST_RECORDS = 2_000_000
_RELEASED = "released"


class Costs:
    """The check that each record's cost and charge follow from usage and tariff."""

    def __init__(self, context: VerificationContext) -> None:
        self.check = Check("costs", "cost from usage and tariff, charge from cost and reservation")
        pricing, caps = context.resolved["pricing"], context.resolved["caps"]
        own = context.reader.cost_basis if context.reader else None
        self._prices = pricing["input_per_m"], pricing["output_per_m"]
        self._basis = own or pricing["basis"]
        # A person's own backend may know another basis, and other amounts to reserve.
        self._own = context.foreign_amounts
        self._reserve_usd = caps["reserve_usd"]

    def look(self, record: Record, file: str, line: int | None, *, adopted: bool) -> None:
        """Price one record again; an adopted one was reserved for under the earlier run's caps."""
        with self.check.guarded(file, line=line):
            self.check.count += 1
            basis = record.cost_basis if self._own else self._basis
            if self._own and basis == "derived_usage_times_tariff":
                basis = None
            tariff = Tariff(*self._prices, basis)
            decision = Decision(ok=record.ok, model=record.model, usage=record.usage)
            cost_usd, cost_basis = tariff.cost(decision)
            charged = record.reserved_usd if cost_usd is None else cost_usd
            reserved = self._reserve_usd
            if self._own:
                reserved = max(record.reserved_usd, reserved)
            if adopted:
                reserved = record.reserved_usd
                # Of an answer whose process was killed before it was settled, in full.
                charged = reserved if record.charged_usd == reserved else charged
            expected = {
                "cost_usd": cost_usd,
                "cost_basis": cost_basis,
                "charged_usd": charged,
                "reserved_usd": reserved,
            }
            for field, value in expected.items():
                found = getattr(record, field)
                if not same(found, value):
                    message = f"{field}: {shown(found)}, computed {shown(value)}"
                    self.check.fail(file, message, line=line)


@dataclass(slots=True)
class Reservation:
    """What the ledger says about one task; `charged_usd` is null while it is in flight."""

    line: int
    id: str
    reserved_usd: float
    charged_usd: float | None = None
    basis: str | None = None

    @property
    def given_back(self) -> bool:
        """Whether it was made ahead for a request that was never sent."""
        return self.charged_usd == 0 and self.basis == NOT_SENT


@dataclass(slots=True)
class Rows:
    """All rows of one run, by task id in the order of the reservations.

    `cut_off` are the tasks without a record that the protocol leaves behind: in flight when the run
    was cut off, or charged above their reservation.
    """

    by_task: dict[str, Reservation] = field(default_factory=dict)
    cut_off: set[str] = field(default_factory=set)
    cap_usd: float | None = None
    charged: Fraction = Fraction(0)

    @property
    def charged_usd(self) -> float:
        """What the reservations came to, those in flight in full, in US dollars."""
        return float(self.charged)

    @property
    def overcharged(self) -> list[str]:
        """The tasks that were charged more than was reserved for them."""
        return [
            task_id
            for task_id, one in self.by_task.items()
            if one.charged_usd is not None and one.charged_usd > one.reserved_usd + EPSILON_USD
        ]


def read_rows(context: VerificationContext, check: Check) -> Rows:
    """Read all rows, up to a torn last one; what is wrong with them is added to the check."""
    rows, books = Rows(), LedgerState()
    tasks: dict[str, str] = {}
    with check.guarded(LEDGER), opened(context.root / LEDGER, follow_links=False) as file:
        try:
            for number, line in numbered_lines(file, most=_LONGEST_ROW):
                if not line.endswith(b"\n"):
                    if context.cut_off:
                        check.notes.append(f"{LEDGER}:{number}: torn, and read by nobody")
                    else:
                        check.fail(LEDGER, "ends in the middle of a row", line=number)
                    break
                if number > 1 + 2 * MOST_RECORDS:
                    check.fail(LEDGER, "too many rows; the others are not read", line=number)
                    break
                check.count += 1
                with check.guarded(LEDGER, line=number):
                    row = loads(line)
                    _check_format(context, row, number, check)
                    books.add(row)
                    _take(rows, tasks, row, number, check)
        except TooLong as error:
            check.fail(LEDGER, f"a row is {error}", line=error.line)
        except LedgerError as error:
            check.fail(LEDGER, str(error))
    rows.charged = books.charged
    return rows


def _check_format(
    context: VerificationContext, row: dict[str, Any], line: int, check: Check
) -> None:
    event = row["event"]
    if event not in _FIELDS:
        check.fail(LEDGER, f"{event!r} is no event of a run", line=line)
    elif set(row) != _FIELDS[event] or not _is_number(row["ts"]):
        check.fail(LEDGER, f"not a row of the contract: {event}", line=line)
    elif event in _META:
        meta = set(row["meta"])
        # A person who releases a reservation says so, and maybe why.
        meta -= {"released_by", "reason"} if row["meta"].get("basis") == _RELEASED else set()
        if meta != _META[event]:
            check.fail(LEDGER, f"meta: not that of a {event}", line=line)
    if event == "cap" and line != 1:
        check.fail(LEDGER, "a cap stands in the first row alone", line=line)
    elif event != "cap" and line == 1:
        check.fail(LEDGER, "the first row is the cap", line=line)
    if event == "reserve" and row["meta"]["adapter"] != context.manifest.backend.name:
        check.fail(LEDGER, "meta.adapter: is not the run's backend", line=line)


def _take(rows: Rows, tasks: dict[str, str], row: dict[str, Any], line: int, check: Check) -> None:
    if row["event"] == "cap":
        rows.cap_usd = row["cap_usd"]
        return
    task_id, reservation_id = row["meta"]["task_id"], row["reservation_id"]
    if row["event"] == "reserve":
        if task_id in rows.by_task:
            check.fail(LEDGER, f"task {task_id!r} has a second reservation", line=line)
            return
        tasks[reservation_id] = task_id
        rows.by_task[task_id] = Reservation(line, reservation_id, row["reserved_usd"])
    elif tasks[reservation_id] != task_id:
        check.fail(LEDGER, "meta.task_id: is not the reservation's", line=line)
    else:
        one = rows.by_task[task_id]
        one.charged_usd, one.basis = row["charged_usd"], row["meta"]["basis"]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_ledger(
    context: VerificationContext, records: Mapping[str, tuple[int, Record]], early: Collection[str]
) -> tuple[Check, Rows | None]:
    """Hold the rows against records and manifest; no rows where the run has none of its own.

    Args:
        context: the run.
        records: line and record of every task that this run asked itself.
        early: tasks whose records were not in the results yet when the process was killed.
    """
    check = Check("ledger", "one reservation a task, settled as recorded, adding up to the charge")
    if LEDGER not in context.tree.files:
        if records and not context.manifest.ledger.shared:
            check.fail(LEDGER, "is missing")
        else:
            check.skip(f"there is no {LEDGER}: the run has no rows of its own")
        return check, None
    rows = read_rows(context, check)
    with check.guarded(LEDGER):
        _check_records(context, rows, records, early, check)
    _check_manifest(context, rows, check)
    return check, rows


def _check_records(
    context: VerificationContext,
    rows: Rows,
    records: Mapping[str, tuple[int, Record]],
    early: Collection[str],
    check: Check,
) -> None:
    for task_id, (line, record) in records.items():
        one = rows.by_task.get(task_id)
        if one is None:
            check.fail(RESULTS, f"task {task_id!r} has no reservation in {LEDGER}", line=line)
        elif one.charged_usd is None:
            check.fail(LEDGER, f"task {task_id!r} has a record and no settlement", line=one.line)
        elif (one.reserved_usd, one.charged_usd, one.basis) != (
            record.reserved_usd,
            record.charged_usd,
            record.cost_basis,
        ):
            message = f"reserved_usd, charged_usd or cost_basis: not as in {LEDGER}:{one.line}"
            check.fail(RESULTS, message, line=line)
    if [task_id for task_id in rows.by_task if task_id in records] != list(records):
        check.fail(LEDGER, "the reservations are in another order than the records")
    missing = [task for task in rows.by_task if task not in records and task not in early]
    rows.cut_off = _explained(context, rows, missing)
    for task_id in missing:
        if task_id not in rows.cut_off:
            message = f"task {task_id!r} has a reservation and no record, and nothing says why"
            check.fail(LEDGER, message, line=rows.by_task[task_id].line)


def _explained(context: VerificationContext, rows: Rows, missing: list[str]) -> set[str]:
    """The reservations without a record that the protocol leaves behind."""
    known = [one for one in missing if context.tasks is None or one in context.places]
    reason, at_once = context.manifest.stop_reason, context.manifest.concurrency
    given_back = {one for one in known if at_once > 1 and rows.by_task[one].given_back}
    if reason == StopReason.OVERCHARGED:
        return given_back.union(set(known).intersection(rows.overcharged))
    if not (context.cut_off or reason == StopReason.LEDGER_UNAVAILABLE):
        return given_back
    left = [one for one in known if one not in given_back]
    if at_once == 1:
        # One after the other, only the last one can have been in flight.
        return set(left) if left == list(rows.by_task)[-1:] else set()
    # In flight, reserved ahead, and answered without a record yet.
    return given_back.union(left) if len(left) <= 3 * at_once else given_back


def _check_manifest(context: VerificationContext, rows: Rows, check: Check) -> None:
    said = context.manifest.ledger
    if context.manifest.finished is None:
        return
    check.count += 1
    if not same(said.charged_by_run_usd, rows.charged_usd):
        check.fail(
            MANIFEST,
            f"ledger.charged_by_run_usd: {said.charged_by_run_usd!r}, the rows add up to "
            f"{rows.charged_usd!r}",
        )
    if not said.shared and said.charged_usd != said.charged_by_run_usd:
        check.fail(MANIFEST, "ledger.charged_usd: nobody else charges a ledger that is not shared")
    if said.charged_usd < said.charged_by_run_usd - EPSILON_USD:
        check.fail(MANIFEST, "ledger.charged_usd: less than this run's own charge")
    if rows.cap_usd is not None and not same(said.cap_usd, rows.cap_usd):
        check.fail(MANIFEST, f"ledger.cap_usd: is not the cap in {LEDGER}:1")
