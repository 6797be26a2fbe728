"""The exclusive lock on a ledger's file, and who has it."""

import errno
import fcntl
import os
import socket
import time
from pathlib import Path

from jevexp.ledger.books import LedgerError, LedgerUnavailable

_POLL_S = 0.005


def lock(file: int, path: Path, timeout_s: float) -> None:
    """Take the lock of an open file, as the pinned harness takes it.

    Raises:
        LedgerUnavailable: another process kept it for longer than `timeout_s`.
        LedgerError: the file system has no locks.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise LedgerError(f"{path}: cannot be locked: {error.strerror}") from error
            if time.monotonic() > deadline:
                raise LedgerUnavailable(
                    f"{path}: {holder(path)} has held the lock for {timeout_s:g} s"
                ) from error
            time.sleep(_POLL_S)
        else:
            return


def unlock(file: int) -> None:
    """Give the lock back."""
    fcntl.flock(file, fcntl.LOCK_UN)


def holder(*paths: Path) -> str:
    """Who has a lock on one of the files, for a message; "another process" where nobody knows.

    Linux lists locks with their process and inode in /proc/locks (proc(5)). The list's device
    number is not the one that `stat` gives on every file system, so only the inode is compared,
    and then the process has to have the file open.
    """
    inodes = {str(path.stat().st_ino) for path in paths if path.exists()}
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        # Number: kind, mode, access, pid, device:inode, start, end; "->" marks one that waits.
        words = line.split()
        if "->" in words or len(words) < 6 or words[5].rpartition(":")[2] not in inodes:
            continue
        pid = words[4]
        if int(pid) > 0 and int(pid) != os.getpid() and _has_open(pid, inodes):
            return f"process {pid} on {socket.gethostname()} ({_command(pid)})"
    return "another process"


def _has_open(pid: str, inodes: set[str]) -> bool:
    try:
        entries = list(Path(f"/proc/{pid}/fd").iterdir())
        return any(str(entry.stat().st_ino) in inodes for entry in entries)
    except PermissionError:
        # Somebody else's process: the list of locks has to do.
        return True
    except OSError:
        return False


def _command(pid: str) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").split()
    except OSError:
        return "command unknown"
    return b" ".join(words).decode(errors="replace")[:100] or "command unknown"
