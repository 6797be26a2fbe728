"""The rows of a run's own ledger, read one by one in the contract's format."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from jevexp.core.json import loads
from jevexp.harness.attempt import NOT_SENT
from jevexp.ledger.books import EPSILON_USD, Books, LedgerError
from jevexp.store.directory import LEDGER
from jevexp.untrusted.files import TooLong, numbered_lines, opened
from jevexp.verification.check import Check
from jevexp.verification.subject import Subject

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


def read_rows(subject: Subject, check: Check) -> Rows:
    """Read all rows, up to a torn last one; what is wrong with them is added to the check."""
    rows, books = Rows(), Books()
    tasks: dict[str, str] = {}
    with check.guarded(LEDGER), opened(subject.root / LEDGER, follow_links=False) as file:
        try:
            for number, line in numbered_lines(file, most=_LONGEST_ROW):
                if not line.endswith(b"\n"):
                    if subject.cut_off:
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
                    _check_format(subject, row, number, check)
                    books.add(row)
                    _take(rows, tasks, row, number, check)
        except TooLong as error:
            check.fail(LEDGER, f"a row is {error}", line=error.line)
        except LedgerError as error:
            check.fail(LEDGER, str(error))
    rows.charged = books.charged
    return rows


def _check_format(subject: Subject, row: dict[str, Any], line: int, check: Check) -> None:
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
    if event == "reserve" and row["meta"]["adapter"] != subject.manifest.backend["name"]:
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
