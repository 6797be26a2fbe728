"""A run's own share of a ledger: what it comes to, and its rows among the run's evidence."""

import os
import threading
from fractions import Fraction
from pathlib import Path

from jevexp.core.json import dumps
from jevexp.ledger.state import LedgerError, Row, cap_row
from jevexp.untrusted.writing import create


class OwnRows:
    """A file in the ledger's own format: the cap in force, then one run's rows and no others.

    The ledger that is shared writes first, since only it can refuse. A row is handed on here
    before the request that it belongs to is sent, so that whatever is killed, this file never has
    a row that the shared ledger was not asked to keep.

    Args:
        path: the file, which must not exist.

    Raises:
        FileExistsError: it exists; nothing was touched.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._begun = False
        self._file = create(path)

    def begin(self, cap_usd: float, ts: float) -> None:
        """Keep the cap in force, in US dollars; from the second time on nothing happens."""
        with self._lock:
            if not self._begun:
                append(self._file.fileno(), cap_row(cap_usd, ts), self.path)
                self._begun = True

    def keep(self, row: Row) -> None:
        """Keep one row of this run, durably.

        Raises:
            LedgerError: the disk took only a part of it.
        """
        with self._lock:
            append(self._file.fileno(), row, self.path)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class RunShare:
    """The reservations that were made through one ledger object.

    Args:
        rows: where their rows are kept as well; None where the ledger itself is that place.
    """

    def __init__(self, rows: OwnRows | None) -> None:
        self._rows = rows
        self._came_to: dict[str, float] = {}

    def __contains__(self, reservation_id: object) -> bool:
        # A row of a kind that we do not know may hold anything.
        return isinstance(reservation_id, str) and reservation_id in self._came_to

    def adopt(self, reservation_id: str) -> None:
        """Count a reservation as made here; its rows follow."""
        self._came_to[reservation_id] = 0.0

    def begin(self, cap_usd: float, ts: float) -> None:
        """Note the cap in force, in US dollars."""
        if self._rows:
            self._rows.begin(cap_usd, ts)

    def reserved(self, row: Row) -> None:
        """Note a reservation of this run."""
        self._came_to[row["reservation_id"]] = row["reserved_usd"]
        self._keep(row)

    def settled(self, row: Row) -> None:
        """Note a settlement; those of other runs' reservations are ignored."""
        if row["reservation_id"] in self._came_to:
            self._came_to[row["reservation_id"]] = row["charged_usd"]
            self._keep(row)

    def usd(self, reservation_id: str) -> float:
        """What one of the reservations comes to now, in full while it is open."""
        return self._came_to[reservation_id]

    @property
    def charged(self) -> Fraction:
        """What all of them come to, in US dollars."""
        return sum(map(Fraction, list(self._came_to.values())), Fraction(0))

    def close(self) -> None:
        """Close the file of the rows."""
        if self._rows:
            self._rows.close()

    def _keep(self, row: Row) -> None:
        if self._rows:
            self._rows.keep(row)


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
