"""A ledger's rows, as the pinned harness writes them, what they add up to, and a run's own."""

import math
import os
import threading
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from jevexp.core.json import dumps
from jevexp.untrusted.writing import create

Row = dict[str, Any]
# Room for the rounding of sums, as the benchmark has it.
EPSILON_USD = 1e-12


class LedgerError(Exception):
    """The ledger cannot be used as asked; nothing was written unless a subclass says so."""


class LedgerUnavailable(LedgerError):
    """The ledger could not be reached in time; whether the last change was written is unknown."""


class CapReached(LedgerError):
    """The reservation would pass the cap; nothing was written and no request may be sent."""


class Overcharged(LedgerError):
    """A charge above its reservation. It was written; the run has to halt."""


# What the amount of a row is called, by the row's event.
AMOUNT_FIELD = {"cap": "cap_usd", "reserve": "reserved_usd", "settle": "charged_usd"}


def cap_row(cap_usd: float, ts: float) -> Row:
    """The cap in US dollars; `ts` is in seconds since the epoch, as in every row."""
    return {"event": "cap", "cap_usd": cap_usd, "ts": ts}


def reservation_row(
    event: str, reservation_id: str, usd: float, ts: float, meta: Mapping[str, Any]
) -> Row:
    """An amount that is set aside ("reserve"), or what a reservation came to ("settle")."""
    row = {"event": event, "reservation_id": reservation_id, AMOUNT_FIELD[event]: usd, "ts": ts}
    return row | {"meta": dict(meta)}


class LedgerState:
    """Reservations and charges, row by row.

    An unsettled reservation counts in full. Sums are exact, so that a thousand small charges meet
    a cap to the cent.
    """

    def __init__(self) -> None:
        self.first_cap_usd: float | None = None
        self.charged = Fraction(0)
        self._open: dict[str, float] = {}
        self._settled: set[str] = set()

    def add(self, row: Mapping[str, Any]) -> None:
        """Take in one row; an event of an unknown kind changes nothing.

        Raises:
            LedgerError: the row contradicts the ones before it, or its amount is none.
            KeyError: a field is missing.
        """
        event = row["event"]
        if not isinstance(event, str):
            raise LedgerError("an event must be text")
        if event in ("reserve", "settle") and not isinstance(row["reservation_id"], str):
            raise LedgerError("a reservation_id must be text")
        if event == "cap" and self.first_cap_usd is None:
            self.first_cap_usd = amount(row["cap_usd"])
        elif event == "reserve":
            reservation_id, reserved_usd = row["reservation_id"], amount(row["reserved_usd"])
            if reservation_id in self._open or reservation_id in self._settled:
                raise LedgerError(f"reservation {reservation_id} occurs twice")
            self._open[reservation_id] = reserved_usd
            self.charged += Fraction(reserved_usd)
        elif event == "settle":
            reservation_id, charged_usd = row["reservation_id"], amount(row["charged_usd"])
            if reservation_id not in self._open:
                raise LedgerError(f"reservation {reservation_id} is settled but not open")
            self.charged += Fraction(charged_usd) - Fraction(self._open.pop(reservation_id))
            self._settled.add(reservation_id)

    def reserved(self, reservation_id: str) -> float:
        """The amount of an open reservation, in US dollars.

        Raises LedgerError: it is settled already, or there is none.
        """
        if reservation_id not in self._open:
            state = "already settled" if reservation_id in self._settled else "unknown"
            raise LedgerError(f"reservation {reservation_id} is {state}")
        return self._open[reservation_id]


def check_fits(charged: Fraction, wanted_usd: float, cap_usd: float) -> None:
    """Refuse a reservation on top of what is charged already, in US dollars.

    Raises CapReached: it would pass the cap.
    """
    if charged + Fraction(wanted_usd) > Fraction(cap_usd) + Fraction(EPSILON_USD):
        raise CapReached(
            f"{wanted_usd} more would pass the cap of {cap_usd} US dollars; "
            f"{float(charged)} are charged"
        )


def amount(value: float) -> float:
    """A finite, non-negative number of US dollars; raises LedgerError: it is something else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise LedgerError(f"an amount must be a number, found {value!r}")
    try:
        usable = math.isfinite(value) and value >= 0
    except OverflowError as error:
        raise LedgerError("an amount must be finite, found a number beyond all floats") from error
    if not usable:
        raise LedgerError(f"an amount must be finite and not negative, found {value!r}")
    return value


class RunShare:
    """The reservations that were made through one ledger object.

    Where a path is given their rows are kept there as well, in the ledger's own format: the cap in
    force, then this run's rows and no others. The ledger that is shared writes first, since only it
    can refuse. A row is handed on here before the request that it belongs to is sent, so that
    whatever is killed, this file never has a row that the shared ledger was not asked to keep.

    `path` is the file, which must not exist; None where the ledger itself is that place.

    Raises FileExistsError: it exists; nothing was touched.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file = create(path) if path else None
        self._turn = threading.Lock()
        self._begun = False
        self._came_to: dict[str, float] = {}

    def __contains__(self, reservation_id: str) -> bool:
        return reservation_id in self._came_to

    def __getitem__(self, reservation_id: str) -> float:
        """What one of the reservations comes to now, in US dollars, in full while it is open."""
        return self._came_to[reservation_id]

    def adopt(self, reservation_id: str) -> None:
        """Count a reservation as made here; its rows follow."""
        self._came_to[reservation_id] = 0.0

    def begin(self, cap_usd: float, ts: float) -> None:
        """Keep the cap in force, in US dollars; from the second time on nothing happens."""
        with self._turn:
            if not self._begun:
                self._keep(cap_row(cap_usd, ts))
                self._begun = True

    def note(self, row: Row) -> None:
        """Note a reservation, or a settlement of one that was noted, durably.

        Raises LedgerError: the disk took only a part of the row.
        """
        if row["event"] == "reserve" or row["reservation_id"] in self._came_to:
            self._came_to[row["reservation_id"]] = row[AMOUNT_FIELD[row["event"]]]
            with self._turn:
                self._keep(row)

    @property
    def charged(self) -> Fraction:
        """What all of them come to, in US dollars."""
        return sum(map(Fraction, list(self._came_to.values())), Fraction(0))

    def close(self) -> None:
        """Close the file of the rows."""
        if self._file:
            self._file.close()

    def _keep(self, row: Row) -> None:
        if self._file and self._path:
            append(self._file.fileno(), row, self._path)


def append(file: int, row: Row, path: Path) -> int:
    """Append a row to an open file and force it to disk; nobody else may write meanwhile.

    Returns:
        The row's length in bytes.

    Raises:
        LedgerError: the disk took only a part of it, which was removed again.
    """
    line = dumps(row).encode() + b"\n"
    size = os.fstat(file).st_size
    written = os.write(file, line)
    if written != len(line):
        os.ftruncate(file, size)
        raise LedgerError(f"{path}: the disk took only a part of a row; it was removed")
    os.fsync(file)
    return written
