"""Exclusive locks on files, which the system drops with the process that has them."""

import errno
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from jevexp.untrusted.files import opened
from jevexp.untrusted.writing import Folder, user_name

_POLL_S = 0.005


class LockHeld(OSError):
    """Another process kept a lock for too long; `strerror` says who, as far as that is known."""


@contextmanager
def locked(path: Path, timeout_s: float = float("inf")) -> Iterator[None]:
    """Hold the lock of a file that is there for nothing else; it is made if need be, and stays.

    Raises:
        LockHeld: another process had it for longer than `timeout_s`.
        OSError: the file cannot be used, or the file system has no locks.
    """
    with Folder.named(path.parent) as folder, folder.append(path.name) as file:
        take(file.fileno(), path, timeout_s)
        yield


def take(file: int, path: Path, timeout_s: float) -> None:
    """Take the lock of an open file, as the pinned harness takes it.

    Raises:
        LockHeld: another process had it for longer than `timeout_s`.
        OSError: the file system has no locks.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise OSError(
                    error.errno, f"cannot be locked: {error.strerror}", str(path)
                ) from error
            if time.monotonic() > deadline:
                reason = f"{holder(path)} has held the lock for {timeout_s:g} s"
                raise LockHeld(error.errno, reason, str(path)) from error
            time.sleep(_POLL_S)
        else:
            return


def give_back(file: int) -> None:
    """Give the lock back."""
    fcntl.flock(file, fcntl.LOCK_UN)


def holder(*paths: Path) -> str:
    """Who has a lock on one of the files, for a message; "another process" where nobody knows.

    Linux lists locks with their process and inode in /proc/locks (proc(5)). The list's device
    number is not the one that `stat` gives on every file system, so only the inode is compared,
    and then the process has to have the file open.
    """
    inodes = {str(path.stat().st_ino) for path in paths if path.exists()}
    for pid in _lockers(inodes):
        if pid != os.getpid() and _has_open(pid, inodes):
            return f"process {pid} of {_user(pid)} on {socket.gethostname()} ({_command(pid)})"
    return "another process"


def _lockers(inodes: set[str]) -> Iterator[int]:
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        # Number: kind, mode, access, pid, device:inode, start, end; "->" marks one that waits.
        words = line.split()
        if "->" not in words and len(words) >= 6 and words[5].rpartition(":")[2] in inodes:
            # Of a process that cannot be seen from here, the number is 0 or below.
            yield from (pid for pid in [int(words[4])] if pid > 0)


def _has_open(pid: int, inodes: set[str]) -> bool:
    try:
        entries = list(Path(f"/proc/{pid}/fd").iterdir())
        return any(str(entry.stat().st_ino) in inodes for entry in entries)
    except PermissionError:
        # Somebody else's process: the list of locks has to do.
        return True
    except OSError:
        return False


def _user(pid: int) -> str:
    try:
        return user_name(Path(f"/proc/{pid}").stat().st_uid)
    except OSError:
        return "an unknown user"


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").split()
    except OSError:
        return "command unknown"
    return b" ".join(words).decode(errors="replace")[:100] or "command unknown"


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
