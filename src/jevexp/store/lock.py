"""Whether a run's directory is still written: a lock that the system drops with its holder."""

import fcntl
import os
from contextlib import suppress
from io import FileIO
from pathlib import Path

from jevexp.untrusted.files import opened


class WriterLock:
    """Held by the process that writes a file, for as long as it lives or until `release`."""

    def __init__(self) -> None:
        self._descriptor: int | None = None

    def hold(self, file: FileIO) -> None:
        """Take the lock on an open file; it stays when that is closed.

        Where the file system has no locks, nobody can tell, and the run goes on.
        """
        self._descriptor = os.dup(file.fileno())
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Let go; harmless where nothing is held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_held(path: Path) -> bool:
    """Whether a process on this machine that lives now holds the lock on a file."""
    try:
        with opened(path, follow_links=False) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        # No such file, something else, or a system without locks: nobody can be seen there.
        return False
    return False
