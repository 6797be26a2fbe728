"""A ledger in a database, for runs on any number of hosts."""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError

from jevexp.core.json import dumps, loads
from jevexp.ledger.base import Ledger
from jevexp.ledger.engine import connect, create_tables, rows, sessions, tables_exist, totals
from jevexp.ledger.owners import LedgerOwner, read_owners
from jevexp.ledger.state import (
    AMOUNT_FIELD,
    CapReached,
    LedgerError,
    LedgerUnavailable,
    Row,
    amount,
    cap_row,
    check_fits,
    reservation_row,
)
from jevexp.untrusted.addresses import redacted

log = logging.getLogger(__name__)

T = TypeVar("T")
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 1.0
_PART_ROWS = 1000
# Sums of floats, exactly: no power of ten that would take hours to write out.
_FRACTION = re.compile(r"-?[0-9]{1,1000}(/[1-9][0-9]{0,999})?")


class _Damaged(Exception):
    """The tables hold values that no ledger of ours writes."""


@dataclass(slots=True)
class _Totals:
    """The sums that a reservation is checked against."""

    cap_usd: float | None
    charged: Fraction
    n_rows: int


class DatabaseLedger(Ledger):
    """One open ledger in SQLite or PostgreSQL, with the rules of the file.

    Each change is one transaction that locks the ledger's totals, looks, adds one row and commits.
    When the connection is lost in the middle nobody knows whether it was committed, so the same
    change is tried again: it has its id from before, and one that is there already is not made
    twice. What cannot be told in time raises `LedgerUnavailable`.

    Args:
        url: the database, with the password if it needs one; it appears in no message.
        cap_usd, now, own_rows: as for `Ledger`.
        timeout_s: how long a database that does not answer, or a lock, is waited for.
        read_only: only look; where there are no tables the ledger is empty, and stays so.

    Raises:
        LedgerUnavailable: the database cannot be reached.
        LedgerError, FileExistsError: as for `Ledger`; or the tables are not ours.
    """

    def __init__(
        self,
        url: URL,
        cap_usd: float,
        *,
        now: Callable[[], float] = time.time,
        timeout_s: float = 60.0,
        own_rows: Path | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(cap_usd, now=now, own_rows=own_rows)
        self._address = url.render_as_string(hide_password=True)
        self._timeout_s = timeout_s
        self._read_only = read_only
        self._turn = threading.Lock()
        self._database = connect(url)
        self._reached = True
        self._is_there = True
        try:
            self._change(self._open, opening=True)
        except LedgerError:
            self.close()
            raise

    @property
    def charged_usd(self) -> float:
        """Settled charges plus open reservations of all runs, in US dollars."""
        if not self._is_there:
            return 0.0
        sums = self._change(_read_totals)
        self._first_cap_usd = sums.cap_usd
        return float(sums.charged)

    def rows(self) -> Iterator[Row]:
        """Every row that is there now, in the order they were written, in the file's format."""
        last = 0
        while self._is_there and (part := self._change(partial(_read_rows, after=last))):
            yield from part.values()
            last = max(part)

    def owners(self) -> dict[str, LedgerOwner]:
        """The processes that are known to have reserved, by their ids."""
        if not self._is_there:
            return {}
        return read_owners(
            self._change(lambda connection: list(connection.scalars(select(sessions.c.fields))))
        )

    def close(self) -> None:
        """Close the ledger; open reservations stay charged."""
        super().close()
        self._database.engine.dispose()

    def _open(self, connection: Connection) -> None:
        if self._read_only:
            self._is_there = tables_exist(connection)
        else:
            self._database.lock_schema(connection)
            create_tables(connection)
            known = select(sessions.c.id).where(sessions.c.id == self._owner_id)
            if connection.execute(known).first() is None:
                fields = dumps(LedgerOwner.here(self._run, self._owner_id).model_dump())
                connection.execute(insert(sessions).values(id=self._owner_id, fields=fields))
        if self._is_there:
            self._first_cap_usd = _read_totals(connection).cap_usd

    def _write_reservation(self, row: Row) -> None:
        self._check_writable()

        def reserve(connection: Connection) -> CapReached | None:
            sums = _read_totals(connection, lock=True)
            if _find(connection, row["reservation_id"], "reserve") is not None:
                # An earlier attempt was committed, and only its answer was lost.
                return None
            if sums.cap_usd is None:
                sums.cap_usd = self._own_cap
                _add(connection, sums, cap_row(sums.cap_usd, row["ts"]))
            self._first_cap_usd = sums.cap_usd
            try:
                check_fits(sums.charged, row["reserved_usd"], self.cap_usd)
            except CapReached as refusal:
                # The cap itself stays.
                return refusal
            sums.charged += Fraction(row["reserved_usd"])
            _add(connection, sums, row)
            return None

        if refusal := self._change(reserve):
            raise refusal

    def _write_settlement(self, row: Row) -> float:
        self._check_writable()
        tried = False

        def settle(connection: Connection) -> float:
            nonlocal tried
            again, tried = tried, True
            sums = _read_totals(connection, lock=True)
            name = row["reservation_id"]
            reserved = _find(connection, name, "reserve")
            if reserved is None:
                raise LedgerError(f"reservation {name} is unknown")
            settled = _find(connection, name, "settle")
            if settled is None:
                sums.charged += Fraction(row["charged_usd"]) - Fraction(reserved.usd)
                _add(connection, sums, row)
            elif not again or (settled.usd, settled.ts) != (row["charged_usd"], row["ts"]):
                raise LedgerError(f"reservation {name} is already settled")
            return float(reserved.usd)

        return self._change(settle)

    def _check_writable(self) -> None:
        if self._read_only:
            raise LedgerError(f"{self._address}: opened only to look")

    def _change(self, work: Callable[[Connection], T], *, opening: bool = False) -> T:
        """Do the work in one transaction, again until it is known to be committed."""
        # After one timeout, later changes are only tried, and not waited for.
        timeout_s = self._timeout_s if self._reached else 0.0
        started = time.monotonic()
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                with self._turn, self._database.engine.begin() as connection:
                    result = work(connection)
            except (OperationalError, InterfaceError) as error:
                waited_s = time.monotonic() - started
                # At the first connection, waiting would only hide a wrong address.
                hopeless = opening and not _is_locked(error)
                if hopeless or waited_s >= timeout_s:
                    self._reached = False
                    raise LedgerUnavailable(self._reason(error, waited_s)) from None
                log.info("%s: %s; trying again", self._address, _first_line(error))
            except SQLAlchemyError as error:
                raise LedgerError(f"{self._address}: {_first_line(error)}") from None
            except _Damaged as error:
                raise LedgerError(f"{self._address}: {error}") from None
            else:
                self._reached = True
                return result
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _reason(self, error: DBAPIError, waited_s: float) -> str:
        if _is_locked(error):
            with suppress(SQLAlchemyError):
                holder = self._database.holder()
                return f"{self._address}: {holder} has held the lock for {waited_s:.0f} s"
        return f"{self._address}: cannot be reached: {_first_line(error)}"


def _is_locked(error: DBAPIError) -> bool:
    """Whether others kept a lock for too long: SQLite's own words, PostgreSQL's code for it."""
    return "database is locked" in str(error.orig) or (
        getattr(error.orig, "sqlstate", None) == "55P03"
    )


def _read_totals(connection: Connection, *, lock: bool = False) -> _Totals:
    """Read and check the sums: SQLite keeps anything in any column."""
    # SQLite has no such lock, and needs none: the whole transaction is the only writer.
    query = select(totals).with_for_update() if lock else select(totals)
    stored = connection.execute(query).one()
    if not (isinstance(stored.charged, str) and _FRACTION.fullmatch(stored.charged)):
        raise _Damaged("charged is no amount")
    if not isinstance(stored.n_rows, int) or stored.n_rows < 0:
        raise _Damaged("n_rows is no number of rows")
    try:
        cap_usd = None if stored.cap_usd is None else amount(stored.cap_usd)
    except LedgerError as error:
        raise _Damaged(f"cap_usd: {error}") from None
    return _Totals(cap_usd, Fraction(stored.charged), stored.n_rows)


def _find(connection: Connection, name: str, kind: str) -> Any:
    query = select(rows.c.usd, rows.c.ts).where(rows.c.reservation_id == name, rows.c.event == kind)
    return connection.execute(query).first()


def _add(connection: Connection, sums: _Totals, row: Row) -> None:
    """Add a row, and what the ledger comes to with it."""
    sums.n_rows += 1
    connection.execute(
        insert(rows).values(
            seq=sums.n_rows,
            event=row["event"],
            reservation_id=row.get("reservation_id"),
            usd=float(row[AMOUNT_FIELD[row["event"]]]),
            ts=row["ts"],
            meta=dumps(row["meta"]) if "meta" in row else None,
        )
    )
    connection.execute(
        update(totals).values(cap_usd=sums.cap_usd, charged=str(sums.charged), n_rows=sums.n_rows)
    )


def _read_rows(connection: Connection, *, after: int) -> dict[int, Row]:
    """The next rows by their numbers."""
    query = select(rows).where(rows.c.seq > after).order_by(rows.c.seq).limit(_PART_ROWS)
    return {stored.seq: _as_row(stored) for stored in connection.execute(query)}


def _as_row(stored: Any) -> Row:
    try:
        usd, ts = amount(stored.usd), amount(stored.ts)
        if not isinstance(stored.seq, int) or stored.event not in AMOUNT_FIELD:
            raise ValueError("its number or its event")
        if stored.event == "cap":
            return cap_row(usd, ts)
        meta = loads(stored.meta)
        if not isinstance(meta, dict) or not isinstance(stored.reservation_id, str):
            raise ValueError("its reservation_id or its meta")
    except (LedgerError, ValueError, TypeError) as error:
        raise _Damaged(f"row {stored.seq}: not a ledger row: {error}") from None
    return reservation_row(stored.event, stored.reservation_id, usd, ts, meta)


def _first_line(error: SQLAlchemyError) -> str:
    """What the database said, without the statement and the address of an explanation."""
    message = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return redacted((message.strip().splitlines() or [type(error).__name__])[0])
