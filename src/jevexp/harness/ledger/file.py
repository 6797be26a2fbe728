"""A ledger as an append-only file that any number of runs and processes share.

Every row is one JSON line; the pinned harness reads our files and we read its. Both lock the file
itself with `flock`, so that they exclude each other, and both keep an unsettled reservation
charged: a request that was in flight when its process died may have cost money.
"""

import errno
import fcntl
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from jevexp.domain.json import loads
from jevexp.harness.ledger.books import (
    Books,
    LedgerError,
    amount,
    check_charge,
    check_fits,
)
from jevexp.harness.ledger.own import OwnRows
from jevexp.harness.ledger.rows import Row, append, cap_row, reserve_row, settle_row

_POLL_S = 0.005
# How every row begins, ours and the pinned harness's.
_ROW_START = b'{"event"'


class FileLedger:
    """One open ledger file.

    The lower of the file's first cap and `cap_usd` is in force: a later run can lower the cap for
    itself and never raise it. Each change takes the exclusive lock, reads only the rows that others
    have appended since, appends one row and forces it to disk.

    Args:
        path: the ledger file; made where it does not exist.
        cap_usd: this run's cap in US dollars.
        now: seconds since the epoch, for the rows' `ts`.
        lock_timeout_s: how long another process may hold the lock.
        own_rows: where this run's rows are kept as well; closed with the ledger.
        read_only: only look; the file has to exist, and nothing in it is mended.

    Raises:
        LedgerError: the cap is not a finite amount, or the file is no ledger.
    """

    def __init__(
        self,
        path: Path,
        cap_usd: float,
        *,
        now: Callable[[], float] = time.time,
        lock_timeout_s: float = 60.0,
        own_rows: OwnRows | None = None,
        read_only: bool = False,
    ) -> None:
        self.path = path
        self._own_cap = amount(cap_usd)
        self._now = now
        self._lock_timeout_s = lock_timeout_s
        self._own_rows = own_rows
        self._read_only = read_only
        # Threads share one open file, between which its lock makes no difference.
        self._turn = threading.Lock()
        flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_APPEND | os.O_CREAT
        self._file = os.open(path, flags | os.O_CLOEXEC, 0o644)
        self._position = 0
        self._lines = 0
        self._books = Books()
        self._own: set[str] = set()
        try:
            self.catch_up()
        except LedgerError:
            self.close()
            raise

    @property
    def cap_usd(self) -> float:
        """The cap in force, in US dollars."""
        first = self._books.first_cap_usd
        return self._own_cap if first is None else min(first, self._own_cap)

    @property
    def charged_usd(self) -> float:
        """Settled charges plus open reservations of all runs, in US dollars."""
        with self._locked():
            return float(self._books.charged)

    @property
    def charged_here_usd(self) -> float:
        """What reservations made through this object came to, open ones in full, in US dollars."""
        with self._turn:
            came_to = (Fraction(self._books.came_to(one)) for one in self._own)
            return float(sum(came_to, Fraction(0)))

    def reserve(self, amount_usd: float, meta: Mapping[str, Any]) -> str:
        """Set an amount aside and return the reservation's id.

        Raises:
            CapReached: it would pass the cap.
            LedgerError: not a finite, non-negative amount, or the file is damaged.
        """
        wanted = amount(amount_usd)
        reservation_id = uuid.uuid4().hex
        with self._locked():
            if self._books.first_cap_usd is None:
                self._append(cap_row(self._own_cap, self._now()))
            if self._own_rows:
                self._own_rows.begin(self.cap_usd, self._now())
            check_fits(self._books.charged, wanted, self.cap_usd)
            row = reserve_row(reservation_id, wanted, self._now(), meta)
            self._append(row)
            self._own.add(reservation_id)
        if self._own_rows:
            self._own_rows.keep(row)
        return reservation_id

    def settle(self, reservation_id: str, charged_usd: float, meta: Mapping[str, Any]) -> None:
        """Replace a reservation by what was really charged.

        Raises:
            Overcharged: the charge is above the reservation; the row was written.
            LedgerError: no such open reservation, or not a finite, non-negative amount.
        """
        charged = amount(charged_usd)
        with self._locked():
            reserved = self._books.reserved(reservation_id)
            row = settle_row(reservation_id, charged, self._now(), meta)
            self._append(row)
        if self._own_rows and reservation_id in self._own:
            self._own_rows.keep(row)
        check_charge(reserved, charged)

    def adopt(self, reservation_id: str) -> None:
        """Count a reservation as made through this object.

        For one that the pinned harness has just written into the same file.

        Raises:
            LedgerError: the file is damaged.
        """
        with self._turn:
            self._own.add(reservation_id)
        self.catch_up()

    def catch_up(self) -> None:
        """Read what others have appended since the last look.

        Raises:
            LedgerError: the file is damaged.
        """
        with self._locked():
            pass

    def close(self) -> None:
        """Close the file; open reservations stay charged."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        if self._own_rows:
            self._own_rows.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._turn:
            self._lock()
            try:
                self._read_on()
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _lock(self) -> None:
        deadline = time.monotonic() + self._lock_timeout_s
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise LedgerError(f"{self.path}: cannot be locked: {error.strerror}") from error
                if time.monotonic() > deadline:
                    raise LedgerError(
                        f"{self.path}: another process has held the lock for "
                        f"{self._lock_timeout_s:g} s"
                    ) from error
                time.sleep(_POLL_S)
            else:
                return

    def _read_on(self) -> None:
        """Read what others appended since the last look."""
        size = os.fstat(self._file).st_size
        if size == self._position:
            return
        if size < self._position:
            raise LedgerError(f"{self.path}: has become shorter; a ledger only grows")
        *complete, torn = self._bytes_until(size).split(b"\n")
        for line in complete:
            self._read(line)
        if torn:
            self._mend(torn)

    def _bytes_until(self, size: int) -> bytes:
        """The bytes from the current position on; all of them, or a short read looks torn."""
        data = bytearray()
        while part := os.pread(
            self._file, size - self._position - len(data), self._position + len(data)
        ):
            data += part
        return bytes(data)

    def _mend(self, torn: bytes) -> None:
        """Deal with a last line without its end, which a dying process left behind.

        Whoever wrote it never heard that it was written, so no request followed from it: a part of
        a row is dropped. A row that only lacks its newline is kept and counts.
        """
        if torn[: len(_ROW_START)] != _ROW_START[: len(torn)]:
            raise LedgerError(f"{self.path}:{self._lines + 1}: not a ledger row")
        if self._read_only:
            return
        try:
            loads(torn)
        except ValueError:
            os.ftruncate(self._file, self._position)
        else:
            os.write(self._file, b"\n")
            self._read(torn)
        os.fsync(self._file)

    def _append(self, row: Row) -> None:
        if self._read_only:
            raise LedgerError(f"{self.path}: opened only to look")
        self._position += append(self._file, row, self.path)
        self._lines += 1
        self._books.add(row)

    def _read(self, line: bytes) -> None:
        """Take in one row that is in the file already."""
        row = None
        try:
            if line.strip():
                row = loads(line)
                self._books.add(row)
        except (ValueError, KeyError, TypeError, LedgerError) as error:
            place = f"{self.path}:{self._lines + 1}"
            raise LedgerError(f"{place}: not a ledger row: {error}") from error
        self._lines += 1
        self._position += len(line) + 1
        if self._own_rows and row and row.get("reservation_id") in self._own:
            # The pinned harness wrote it, for a reservation that was adopted.
            self._own_rows.begin(self.cap_usd, self._now())
            self._own_rows.keep(row)
