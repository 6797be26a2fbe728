"""What every ledger does, wherever its rows are kept."""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from jevexp.ledger.owners import LedgerOwner, new_owner_id, new_reservation_id, owner_id
from jevexp.ledger.run_share import OwnRows, RunShare
from jevexp.ledger.state import (
    CapReached,
    LedgerError,
    LedgerState,
    LedgerUnavailable,
    OpenReservation,
    Row,
    Statement,
    amount,
    check_charge,
    reserve_row,
    settle_row,
)

log = logging.getLogger(__name__)


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
        own_rows: where this run's rows are kept as well; closed with the ledger.

    Raises:
        LedgerError: the cap is not a finite amount.
    """

    def __init__(
        self,
        cap_usd: float,
        *,
        now: Callable[[], float] = time.time,
        own_rows: OwnRows | None = None,
    ) -> None:
        self._own_cap = amount(cap_usd)
        self._now = now
        self._run = own_rows.path.parent if own_rows else None
        self._owner_id = new_owner_id()
        self._own = RunShare(own_rows)
        self._late: list[Row] = []
        self._late_turn = threading.Lock()

    @property
    def cap_usd(self) -> float:
        """The cap in force, in US dollars."""
        first = self._first_cap_usd()
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
        row = reserve_row(new_reservation_id(self._owner_id), amount(amount_usd), self._now(), meta)
        self._deliver()
        try:
            self._write_reservation(row)
        except CapReached:
            self._own.begin(self.cap_usd, row["ts"])
            raise
        self._own.begin(self.cap_usd, row["ts"])
        self._own.reserved(row)
        return str(row["reservation_id"])

    def settle(self, reservation_id: str, charged_usd: float, meta: Mapping[str, Any]) -> None:
        """Replace a reservation by what was really charged.

        Raises:
            Overcharged: the charge is above the reservation; the row was written.
            LedgerError: no such open reservation, or not a finite, non-negative amount.
        """
        row = settle_row(reservation_id, amount(charged_usd), self._now(), meta)
        try:
            reserved = self._write_settlement(row)
        except LedgerUnavailable as error:
            if reservation_id not in self._own:
                raise
            log.warning("a settlement has to wait: %s", error)
            reserved = self._own.usd(reservation_id)
            with self._late_turn:
                self._late.append(row)
        self._own.settled(row)
        check_charge(reserved, row["charged_usd"])

    def close(self) -> None:
        """Let go of the ledger; open reservations stay charged."""
        try:
            self._deliver()
        except LedgerUnavailable as error:
            log.warning("reservations that stay open in the ledger: %d; %s", len(self._late), error)
            self._late.clear()
        self._close()
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

        Raises:
            LedgerError: it is damaged.
        """
        state, reservations = LedgerState(), 0
        waiting: dict[str, Row] = {}
        for row in self.rows():
            state.add(row)
            if row["event"] == "reserve":
                reservations += 1
                waiting[row["reservation_id"]] = row
            elif row["event"] == "settle":
                del waiting[row["reservation_id"]]
        owners = self.owners() if waiting else {}
        return Statement(
            cap_usd=state.first_cap_usd,
            charged_usd=float(state.charged),
            reservations=reservations,
            open=tuple(_open_reservation(row, owners) for row in waiting.values()),
        )

    @abstractmethod
    def _first_cap_usd(self) -> float | None:
        """The ledger's first cap as far as it is known; None before the first reservation."""

    @abstractmethod
    def _write_reservation(self, row: Row) -> None:
        """Write a reservation, and the cap before the very first one, if it fits."""

    @abstractmethod
    def _write_settlement(self, row: Row) -> float:
        """Write a settlement; returns what was reserved, in US dollars."""

    @abstractmethod
    def _close(self) -> None:
        """Let go of where the rows are kept; harmless when it is done already."""

    def _owner(self) -> LedgerOwner:
        """Describe the process that uses the ledger; importing psutil for it takes about 20 ms."""
        return LedgerOwner.here(self._run, self._owner_id)

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


def _open_reservation(row: Row, owners: dict[str, LedgerOwner]) -> OpenReservation:
    # Amount and id are checked; the rest is whatever somebody wrote.
    meta = row.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    ts = row.get("ts")
    name = row["reservation_id"]
    return OpenReservation(
        reservation_id=name,
        usd=row["reserved_usd"],
        ts=float(ts) if isinstance(ts, int | float) else None,
        task_id=_text(meta.get("task_id")),
        adapter=_text(meta.get("adapter")),
        owner=owners.get(owner_id(name)),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
