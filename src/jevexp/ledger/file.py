"""A ledger as an append-only file that any number of runs and processes share.

Every row is one JSON line; the pinned harness reads our files and we read its. Both lock the file
itself with `flock`, so that they exclude each other, and both keep an unsettled reservation
charged: a request that was in flight when its process died may have cost money.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from io import FileIO
from pathlib import Path

from jevexp.core.json import loads
from jevexp.ledger.base import Ledger
from jevexp.ledger.owners import LedgerOwner, read_owners
from jevexp.ledger.state import (
    LedgerError,
    LedgerState,
    LedgerUnavailable,
    Row,
    append,
    cap_row,
    check_fits,
)
from jevexp.untrusted.files import MAX_LINE_BYTES, RefusedPath, open_file, opened, read_document
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
        cap_usd, now, own_rows: as for `Ledger`; with `own_rows` the file is shared.
        lock_timeout_s: how long another process may hold the lock.
        read_only: only look; the file has to exist, and nothing in it is mended.

    Raises LedgerError, FileExistsError: as for `Ledger`; or the file is no ledger.
    """

    def __init__(
        self,
        path: Path,
        cap_usd: float,
        *,
        now: Callable[[], float] = time.time,
        lock_timeout_s: float = 60.0,
        own_rows: Path | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(cap_usd, now=now, own_rows=own_rows)
        self.path = path
        self._lock_timeout_s = lock_timeout_s
        self._read_only = read_only
        # Threads share one open file, between which its lock makes no difference.
        self._turn = threading.Lock()
        self._owners_path = path.with_name(f"{path.name}.sessions")
        self._position = 0
        self._lines = 0
        self._state = LedgerState()
        with ExitStack() as on_failure:
            on_failure.callback(self._own.close)
            try:
                self._stream = open_file(path, follow_links=False) if read_only else _add_to(path)
                self._file = on_failure.enter_context(self._stream).fileno()
                with self._locked():
                    # Who is about to reserve, noted while nobody else writes; of a ledger for one
                    # run nobody asks, and importing psutil takes about 20 ms.
                    if own_rows:
                        owner = LedgerOwner.here(self._run, self._owner_id)
                        with _add_to(self._owners_path) as sessions:
                            append(sessions.fileno(), owner.model_dump(), path)
            except RefusedPath as error:
                raise LedgerError(f"{error.filename}: {error.strerror}") from error
            on_failure.pop_all()

    @property
    def charged_usd(self) -> float:
        """Settled charges plus open reservations of all runs, in US dollars."""
        with self._locked():
            return float(self._state.charged)

    def adopt(self, reservation_id: str) -> None:
        """Count a reservation as made through this object.

        For one that the pinned harness has just written into the same file.

        Raises LedgerError: the file is damaged.
        """
        self._own.adopt(reservation_id)
        self.catch_up()

    def catch_up(self) -> None:
        """Read what others have appended since the last look.

        Raises LedgerError: the file is damaged.
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
        if not self._owners_path.exists():
            return {}
        try:
            return read_owners(read_document(self._owners_path, follow_links=False).splitlines())
        except (OSError, ValueError) as error:
            raise LedgerError(f"{self._owners_path}: cannot be read: {error}") from error

    def close(self) -> None:
        """Close the ledger; open reservations stay charged."""
        super().close()
        self._stream.close()

    def _write_reservation(self, row: Row) -> None:
        with self._locked():
            if self._first_cap_usd is None:
                self._append(cap_row(self._own_cap, row["ts"]))
            check_fits(self._state.charged, row["reserved_usd"], self.cap_usd)
            self._append(row)

    def _write_settlement(self, row: Row) -> float:
        with self._locked():
            reserved_usd = self._state.reserved(row["reservation_id"])
            self._append(row)
        return reserved_usd

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._turn:
            try:
                take(self._file, self.path, self._lock_timeout_s)
            except LockHeld as error:
                raise LedgerUnavailable(f"{self.path}: {error.strerror}") from error
            except OSError as error:
                raise LedgerError(f"{self.path}: {error.strerror}") from error
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
        torn, at = b"", self._position
        # All of the bytes, or a short read looks torn.
        while part := os.pread(self._file, min(size - at, _PART_BYTES), at):
            at += len(part)
            *complete, torn = (torn + part).split(b"\n")
            for line in complete:
                self._read(line)
            if len(torn) > MAX_LINE_BYTES:
                raise LedgerError(f"{self.path}:{self._lines + 1}: not a ledger row: too long")
        if torn:
            self._mend(torn)

    def _mend(self, torn: bytes) -> None:
        """Deal with a last line without its end, which a dying process left behind."""
        # Whoever wrote it never heard that it was written, so no request followed from it: a part
        # of a row is dropped. A row that only lacks its newline is kept and counts.
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
        self._first_cap_usd = self._state.first_cap_usd

    def _read(self, line: bytes) -> None:
        """Take in one row that is in the file already."""
        row = None
        try:
            if line.strip():
                row = loads(line)
                self._state.add(row)
                self._first_cap_usd = self._state.first_cap_usd
        except (ValueError, KeyError, TypeError, LedgerError) as error:
            place = f"{self.path}:{self._lines + 1}"
            raise LedgerError(f"{place}: not a ledger row: {error}") from error
        self._lines += 1
        self._position += len(line) + 1
        if row and row["event"] in ("reserve", "settle") and row["reservation_id"] in self._own:
            # Of an adopted reservation, which the pinned harness wrote.
            self._own.begin(self.cap_usd, row["ts"])
            self._own.note(row)


def _add_to(path: Path) -> FileIO:
    """Open a file for appending; it is made where it does not exist."""
    with Folder.named(path.parent) as folder:
        return folder.append(path.name)
