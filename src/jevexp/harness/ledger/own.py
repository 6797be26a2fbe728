"""A run's own rows of a ledger that it shares, kept with the rest of its evidence."""

import os
import threading
from pathlib import Path

from jevexp.harness.ledger.rows import Row, append, cap_row


class OwnRows:
    """A file in the ledger's own format: the cap in force, then one run's rows and no others.

    The ledger that is shared writes first, since only it can refuse. A row is handed on here
    before the request that it belongs to is sent, so that whatever is killed, this file never has
    a row which the shared ledger lacks.

    Args:
        path: the file, which must not exist.

    Raises:
        FileExistsError: it exists; nothing was touched.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._begun = False
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o644)

    def begin(self, cap_usd: float, ts: float) -> None:
        """Keep the cap in force, in US dollars; from the second time on nothing happens."""
        with self._lock:
            if not self._begun:
                append(self._file, cap_row(cap_usd, ts), self._path)
                self._begun = True

    def keep(self, row: Row) -> None:
        """Keep one row of this run, durably.

        Raises:
            LedgerError: the disk took only a part of it.
        """
        with self._lock:
            append(self._file, row, self._path)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
