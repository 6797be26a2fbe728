"""The rules that every ledger follows, wherever its rows are kept."""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from jevexp.ledger.owners import LedgerOwner, new_owner_id, new_reservation_id, owner_id
from jevexp.ledger.state import (
    EPSILON_USD,
    CapReached,
    LedgerError,
    LedgerState,
    LedgerUnavailable,
    Overcharged,
    Row,
    RunShare,
    amount,
    reservation_row,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenReservation:
    """A reservation that nobody settled, of `usd` US dollars; None for what its row does not say.

    `ts` is when it was made, in seconds since the epoch, `adapter` the provider's name; `owner` is
    None where nobody kept who made it.
    """

    reservation_id: str
    usd: float
    ts: float | None
    task_id: str | None
    adapter: str | None
    owner: LedgerOwner | None

    @classmethod
    def of(cls, row: Row, owners: Mapping[str, LedgerOwner]) -> Self:
        """From its row, whose amount and id are checked; the rest is whatever somebody wrote."""
        meta = row.get("meta")
        meta = meta if isinstance(meta, dict) else {}
        task_id, adapter = (
            None if meta.get(name) is None else str(meta[name]) for name in ("task_id", "adapter")
        )
        ts = float(row["ts"]) if isinstance(row.get("ts"), int | float) else None
        name = row["reservation_id"]
        return cls(name, row["reserved_usd"], ts, task_id, adapter, owners.get(owner_id(name)))


@dataclass(frozen=True, slots=True)
class Statement:
    """A ledger at one moment; amounts are US dollars.

    `cap_usd` is its first cap, None before the first reservation; `charged_usd` includes the open
    reservations, of which `open` has the oldest first; `reservations` counts all ever made.
    """

    cap_usd: float | None
    charged_usd: float
    reservations: int
    open: tuple[OpenReservation, ...]

    @property
    def open_usd(self) -> float:
        """What the open reservations set aside."""
        return float(sum(reservation.usd for reservation in self.open))


class Ledger(ABC):
    """A spending cap that any number of runs share; amounts are US dollars.

    This class makes the rows and counts the run's own; a subclass keeps them. One object may be
    used from several threads at once.

    A settlement that the ledger could not take is kept and tried again before the next
    reservation and at the end: until then the shared ledger charges the reservation in full, so
    that the cap holds all the same.

    Args:
        cap_usd: this run's cap in US dollars.
        now: seconds since the epoch, for the rows' `ts`.
        own_rows: a new file in which this run's rows are kept as well; None: in the ledger alone.

    Raises:
        LedgerError: the cap is not a finite amount.
        FileExistsError: `own_rows` exists; nothing was touched.
    """

    def __init__(
        self, cap_usd: float, *, now: Callable[[], float] = time.time, own_rows: Path | None = None
    ) -> None:
        self._own_cap = amount(cap_usd)
        # The ledger's first cap as far as it is known; None before the first reservation.
        self._first_cap_usd: float | None = None
        self._now = now
        self._run = own_rows.parent if own_rows else None
        self._owner_id = new_owner_id()
        self._own = RunShare(own_rows)
        self._late: list[Row] = []
        self._late_turn = threading.Lock()

    @property
    def cap_usd(self) -> float:
        """The cap in force, in US dollars."""
        first = self._first_cap_usd
        return self._own_cap if first is None else min(first, self._own_cap)

    @property
    @abstractmethod
    def charged_usd(self) -> float:
        """Settled charges plus open reservations of all runs, in US dollars."""

    @property
    def charged_here_usd(self) -> float:
        """What reservations made through this object came to, open ones in full, in US dollars."""
        return float(self._own.charged)

    def reserve(self, amount_usd: float, meta: Mapping[str, Any]) -> str:
        """Set an amount aside and return the reservation's id.

        Raises:
            CapReached: it would pass the cap.
            LedgerUnavailable: nobody can say now whether it is set aside; nothing may be sent.
            LedgerError: not a finite, non-negative amount, or the ledger is damaged.
        """
        reservation_id = new_reservation_id(self._owner_id)
        row = reservation_row("reserve", reservation_id, amount(amount_usd), self._now(), meta)
        self._deliver()
        try:
            self._write_reservation(row)
        except CapReached:
            self._own.begin(self.cap_usd, row["ts"])
            raise
        self._own.begin(self.cap_usd, row["ts"])
        self._own.note(row)
        return reservation_id

    def settle(self, reservation_id: str, charged_usd: float, meta: Mapping[str, Any]) -> None:
        """Replace a reservation by what was really charged.

        Raises:
            Overcharged: the charge is above the reservation; the row was written.
            LedgerError: no such open reservation, or not a finite, non-negative amount.
        """
        row = reservation_row("settle", reservation_id, amount(charged_usd), self._now(), meta)
        try:
            reserved_usd = self._write_settlement(row)
        except LedgerUnavailable as error:
            if reservation_id not in self._own:
                raise
            log.warning("a settlement has to wait: %s", error)
            reserved_usd = self._own[reservation_id]
            with self._late_turn:
                self._late.append(row)
        self._own.note(row)
        if charged_usd > reserved_usd + EPSILON_USD:
            raise Overcharged(
                f"charged {charged_usd}, more than the reserved {reserved_usd} US dollars"
            )

    def close(self) -> None:
        """Close the ledger; open reservations stay charged."""
        try:
            self._deliver()
        except LedgerUnavailable as error:
            log.warning("reservations that stay open in the ledger: %d; %s", len(self._late), error)
            self._late.clear()
        self._own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """Every row that is there now, in the order they were written, in the file's format."""

    @abstractmethod
    def owners(self) -> dict[str, LedgerOwner]:
        """The processes that are known to have reserved, by their ids."""

    def statement(self) -> Statement:
        """Read the ledger from its first row to its last, for a person who looks at it.

        Raises LedgerError: it is damaged.
        """
        state, reservations = LedgerState(), 0
        unsettled: dict[str, Row] = {}
        for row in self.rows():
            state.add(row)
            if row["event"] == "reserve":
                reservations += 1
                unsettled[row["reservation_id"]] = row
            elif row["event"] == "settle":
                del unsettled[row["reservation_id"]]
        owners = self.owners() if unsettled else {}
        open_ = tuple(OpenReservation.of(row, owners) for row in unsettled.values())
        return Statement(state.first_cap_usd, float(state.charged), reservations, open_)

    @abstractmethod
    def _write_reservation(self, row: Row) -> None:
        """Write a reservation, and the cap before the very first one, if it fits."""

    @abstractmethod
    def _write_settlement(self, row: Row) -> float:
        """Write a settlement; returns what was reserved, in US dollars."""

    def _deliver(self) -> None:
        """Write the settlements that could not be written when they were made."""
        with self._late_turn:
            while self._late:
                try:
                    self._write_settlement(self._late[0])
                except LedgerUnavailable:
                    raise
                except LedgerError as error:
                    # A person released the reservation meanwhile.
                    log.warning("a settlement came too late: %s", error)
                del self._late[0]
