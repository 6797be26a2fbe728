"""Exclusive locks on files; the system drops them when their process ends."""

import errno
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from jevexp.untrusted.files import opened, user_name
from jevexp.untrusted.writing import Folder

_POLL_S = 0.005


class LockHeld(OSError):
    """Another process kept a lock for too long; `strerror` says who, as far as that is known."""


@contextmanager
def locked(path: Path, timeout_s: float = float("inf")) -> Iterator[None]:
    """Hold the lock of a file that exists for nothing else; it is made if need be, and stays.

    Raises:
        LockHeld: another process had it for longer than `timeout_s`.
        OSError: the file cannot be used, or the file system has no locks.
    """
    with Folder.named(path.parent) as folder, folder.append(path.name) as file:
        take(file.fileno(), path, timeout_s)
        yield


def take(file: int, path: Path, timeout_s: float) -> None:
    """Take the lock of an open file, as the pinned harness takes it; errors as of `locked`."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                reason = f"cannot be locked: {error.strerror}"
                raise OSError(error.errno, reason, str(path)) from error
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
    and then the process has to have the file open. Elsewhere the processes that have one of the
    files open are named, who may wait for the lock as well.
    """
    files = {str(path.stat().st_ino): path.resolve() for path in paths if path.exists()}
    try:
        locks = Path("/proc/locks").read_text()
    except OSError:
        pids = _openers(set(files.values()))
    else:
        pids = [pid for pid in _lockers(locks, set(files)) if _has_open(pid, set(files))][:1]
    return " or ".join(map(_described, pids)) or "another process"


def _lockers(locks: str, inodes: set[str]) -> Iterator[int]:
    for line in locks.splitlines():
        # Number: kind, mode, access, pid, device:inode, start, end; "->" marks one that waits.
        words = line.split()
        if "->" not in words and len(words) >= 6 and words[5].rpartition(":")[2] in inodes:
            pid = int(words[4])
            # Of a process that cannot be seen from here, the number is 0 or below.
            if pid > 0 and pid != os.getpid():
                yield pid


def _has_open(pid: int, inodes: set[str]) -> bool:
    try:
        entries = Path(f"/proc/{pid}/fd").iterdir()
        return any(str(entry.stat().st_ino) in inodes for entry in entries)
    except PermissionError:
        # Somebody else's process: the list of locks has to do.
        return True
    except OSError:
        return False


def _openers(files: set[Path]) -> list[int]:
    """Other processes that have one of the files open, as far as this user may see it."""
    import psutil

    pids = []
    # A process may end meanwhile, or belong to somebody else.
    with suppress(psutil.Error, OSError):
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if any(Path(file.path) in files for file in process.open_files()):
                    pids.append(process.pid)
    return [pid for pid in pids if pid != os.getpid()]


def _described(pid: int) -> str:
    import psutil

    user, command = "an unknown user", "command unknown"
    with suppress(psutil.Error, OSError):
        process = psutil.Process(pid)
        user = user_name(process.uids().effective)
        words = " ".join(process.cmdline()).encode(errors="replace").decode().split()
        command = " ".join(words)[:100] or command
    return f"process {pid} of {user} on {socket.gethostname()} ({command})"


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

    def __del__(self) -> None:
        self.release()

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
