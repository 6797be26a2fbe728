"""A ledger as an append-only file that any number of runs and processes share.

Every row is one JSON line; the pinned harness reads our files and we read its. Both lock the file
itself with `flock`, so that they exclude each other, and both keep an unsettled reservation
charged: a request that was in flight when its process died may have cost money.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader, FileIO
from pathlib import Path

from jevexp.core.json import loads
from jevexp.ledger.base import Ledger
from jevexp.ledger.owners import LedgerOwner, read_owners
from jevexp.ledger.run_share import OwnRows, append
from jevexp.ledger.state import (
    LedgerError,
    LedgerState,
    LedgerUnavailable,
    Row,
    cap_row,
    check_fits,
)
from jevexp.untrusted.files import (
    MAX_LINE_BYTES,
    RefusedPath,
    open_file,
    opened,
    read_document,
)
from jevexp.untrusted.locks import LockHeld, give_back, take
from jevexp.untrusted.writing import Folder

# How every row begins, ours and the pinned harness's.
_ROW_START = b'{"event"'
_PART_BYTES = 1 << 20


class FileLedger(Ledger):
    """One open ledger file.

    The lower of the file's first cap and `cap_usd` is in force: a later run can lower the cap for
    itself and never raise it. Each change takes the exclusive lock, reads only the rows that others
    have appended since, appends one row and forces it to disk.

    Args:
        path: the ledger file; made where it does not exist.
        cap_usd: this run's cap in US dollars.
        now: seconds since the epoch, for the rows' `ts`.
        lock_timeout_s: how long another process may hold the lock.
        own_rows: where this run's rows are kept as well, if the file is shared; closed with it.
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
        super().__init__(cap_usd, now=now, own_rows=own_rows)
        self.path = path
        self._lock_timeout_s = lock_timeout_s
        self._read_only = read_only
        # Threads share one open file, between which its lock makes no difference.
        self._turn = threading.Lock()
        self._stream = _open(path, read_only=read_only)
        self._file = self._stream.fileno()
        self._position = 0
        self._lines = 0
        self._state = LedgerState()
        try:
            with self._locked():
                if own_rows:
                    _keep_owner(path, self._owner())
        except LedgerError:
            self.close()
            raise
        except RefusedPath as error:
            self.close()
            raise LedgerError(f"{error.filename}: {error.strerror}") from error

    @property
    def charged_usd(self) -> float:
        """Settled charges plus open reservations of all runs, in US dollars."""
        with self._locked():
            return float(self._state.charged)

    def adopt(self, reservation_id: str) -> None:
        """Count a reservation as made through this object.

        For one that the pinned harness has just written into the same file.

        Raises:
            LedgerError: the file is damaged.
        """
        self._own.adopt(reservation_id)
        self.catch_up()

    def catch_up(self) -> None:
        """Read what others have appended since the last look.

        Raises:
            LedgerError: the file is damaged.
        """
        with self._locked():
            pass

    def rows(self) -> Iterator[Row]:
        """Every row that is in the file now, one after the other."""
        self.catch_up()
        with opened(self.path, follow_links=False) as file:
            for _ in range(self._lines):
                if line := file.readline().strip():
                    yield loads(line)

    def owners(self) -> dict[str, LedgerOwner]:
        """The processes that are known to have reserved, by their ids."""
        path = _owners_path(self.path)
        if not path.exists():
            return {}
        try:
            lines = read_document(path, follow_links=False).splitlines()
        except (OSError, ValueError) as error:
            raise LedgerError(f"{path}: cannot be read: {error}") from error
        return read_owners(lines)

    def _close(self) -> None:
        self._stream.close()

    def _first_cap_usd(self) -> float | None:
        return self._state.first_cap_usd

    def _write_reservation(self, row: Row) -> None:
        with self._locked():
            if self._state.first_cap_usd is None:
                self._append(cap_row(self._own_cap, row["ts"]))
            check_fits(self._state.charged, row["reserved_usd"], self.cap_usd)
            self._append(row)

    def _write_settlement(self, row: Row) -> float:
        with self._locked():
            reserved = self._state.reserved(row["reservation_id"])
            self._append(row)
        return reserved

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._turn:
            _lock(self._file, self.path, self._lock_timeout_s)
            try:
                self._read_on()
                yield
            finally:
                give_back(self._file)

    def _read_on(self) -> None:
        """Read what others appended since the last look."""
        size = os.fstat(self._file).st_size
        if size == self._position:
            return
        if size < self._position:
            raise LedgerError(f"{self.path}: has become shorter; a ledger only grows")
        torn = b""
        for part in self._parts(size):
            *complete, torn = (torn + part).split(b"\n")
            for line in complete:
                self._read(line)
            if len(torn) > MAX_LINE_BYTES:
                raise LedgerError(f"{self.path}:{self._lines + 1}: not a ledger row: too long")
        if torn:
            self._mend(torn)

    def _parts(self, size: int) -> Iterator[bytes]:
        """The bytes from the current position on; all of them, or a short read looks torn."""
        position = self._position
        while part := os.pread(self._file, min(size - position, _PART_BYTES), position):
            yield part
            position += len(part)

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
        self._state.add(row)

    def _read(self, line: bytes) -> None:
        """Take in one row that is in the file already."""
        row = None
        try:
            if line.strip():
                row = loads(line)
                self._state.add(row)
        except (ValueError, KeyError, TypeError, LedgerError) as error:
            place = f"{self.path}:{self._lines + 1}"
            raise LedgerError(f"{place}: not a ledger row: {error}") from error
        self._lines += 1
        self._position += len(line) + 1
        if row:
            self._note(row)

    def _note(self, row: Row) -> None:
        """Keep a row of an adopted reservation, which the pinned harness wrote."""
        if row.get("reservation_id") not in self._own:
            return
        if row["event"] == "reserve":
            self._own.begin(self.cap_usd, row["ts"])
            self._own.reserved(row)
        elif row["event"] == "settle":
            self._own.settled(row)


def _owners_path(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}.sessions")


def _open(path: Path, *, read_only: bool) -> FileIO | BufferedReader:
    try:
        if read_only:
            return open_file(path, follow_links=False)
        with Folder.named(path.parent) as folder:
            return folder.append(path.name)
    except RefusedPath as error:
        raise LedgerError(f"{error.filename}: {error.strerror}") from error


def _lock(file: int, path: Path, timeout_s: float) -> None:
    try:
        take(file, path, timeout_s)
    except LockHeld as error:
        raise LedgerUnavailable(f"{path}: {error.strerror}") from error
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}") from error


def _keep_owner(ledger: Path, owner: LedgerOwner) -> None:
    """Note who is about to reserve; the ledger is locked meanwhile."""
    path = _owners_path(ledger)
    with Folder.named(path.parent) as folder, folder.append(path.name) as file:
        append(file.fileno(), owner.fields(), ledger)
