"""What a ledger comes to, and which reservations are open: for a person who looks at it."""

from dataclasses import dataclass

from jevexp.ledger.books import Books
from jevexp.ledger.protocol import ReadableLedger
from jevexp.ledger.rows import Row
from jevexp.ledger.sessions import Session, session_of


@dataclass(frozen=True, slots=True)
class Open:
    """A reservation that nobody settled.

    Attributes:
        reservation_id: its id.
        usd: what it sets aside, in US dollars.
        ts: when it was made, in seconds since the epoch; None where the row does not say.
        task_id: the task that it is for, None where the row does not say.
        adapter: the provider's name, None where the row does not say.
        session: who made it, None where nobody kept that.
    """

    reservation_id: str
    usd: float
    ts: float | None
    task_id: str | None
    adapter: str | None
    session: Session | None


@dataclass(frozen=True, slots=True)
class Statement:
    """A ledger at one moment; amounts are US dollars.

    Attributes:
        cap_usd: its first cap; None before the first reservation.
        charged_usd: settled charges and open reservations together.
        reservations: how many were ever made.
        open: those that nobody settled, oldest first.
    """

    cap_usd: float | None
    charged_usd: float
    reservations: int
    open: tuple[Open, ...]

    @property
    def open_usd(self) -> float:
        """What the open reservations set aside."""
        return float(sum(one.usd for one in self.open))


def statement(ledger: ReadableLedger) -> Statement:
    """Read a ledger from its first row to its last.

    Raises:
        LedgerError: it is damaged.
    """
    books, reservations = Books(), 0
    waiting: dict[str, Row] = {}
    for row in ledger.rows():
        books.add(row)
        if row["event"] == "reserve":
            reservations += 1
            waiting[row["reservation_id"]] = row
        elif row["event"] == "settle":
            del waiting[row["reservation_id"]]
    sessions = ledger.sessions() if waiting else {}
    return Statement(
        cap_usd=books.first_cap_usd,
        charged_usd=float(books.charged),
        reservations=reservations,
        open=tuple(_open(row, sessions) for row in waiting.values()),
    )


def _open(row: Row, sessions: dict[str, Session]) -> Open:
    # Amount and id are checked; the rest is whatever somebody wrote.
    meta = row.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    ts = row.get("ts")
    name = row["reservation_id"]
    return Open(
        reservation_id=name,
        usd=row["reserved_usd"],
        ts=float(ts) if isinstance(ts, int | float) else None,
        task_id=_text(meta.get("task_id")),
        adapter=_text(meta.get("adapter")),
        session=sessions.get(session_of(name)),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
