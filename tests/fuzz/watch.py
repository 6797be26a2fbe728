"""Watches one case: what it may not do raises, however deep inside the program it happens."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# For one case: what it may take of the processor, and how long it may last on a busy machine.
MOST_CPU_S = 5.0
MOST_WALL_S = 60.0

# What Python reports of itself when somebody starts a program, unpickles or speaks to a network.
_NEVER = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "pickle.find_class",
    "socket.connect",
    "socket.bind",
)
_WRITES = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate")
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Violation(BaseException):
    """Something that no input may cause; no handler of the program may swallow it."""


class _Watch:
    def __init__(self) -> None:
        self.allowed: tuple[str, ...] | None = None
        self.found: str | None = None
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.allowed is None or self.found is not None:
            return
        if event in _NEVER or (event.startswith("os.") and event in _WRITES):
            if event in _NEVER or not self._is_inside(_in_folder(arguments)):
                self.found = f"{event} {arguments!r}"[:300]
                raise Violation(self.found)
        elif event == "open" and self._writes(arguments) and not self._may_open(arguments[0]):
            self.found = f"open {arguments!r}"[:300]
            raise Violation(self.found)

    def _writes(self, arguments: tuple[Any, ...]) -> bool:
        flags = arguments[2]
        return isinstance(flags, int) and bool(flags & _WRITE_FLAGS)

    def _may_open(self, path: Any) -> bool:
        # Python does not report the folder that a bare name is opened in. Only the guarded writer
        # opens by bare names, in a folder that it opened itself, which `_in_folder` tells of what
        # it makes, renames and removes there; and a test finds every other writer.
        return (isinstance(path, str) and os.sep not in path) or self._is_inside(path)

    def _is_inside(self, path: Any) -> bool:
        if isinstance(path, int):
            return True
        name = os.path.realpath(os.fsdecode(path))
        return name == os.devnull or f"{name}/".startswith(self.allowed or ())


def _in_folder(arguments: tuple[Any, ...]) -> Any:
    """What a call is about, below the folder whose descriptor is its last argument, if any is."""
    path, folder = arguments[0], arguments[-1]
    if not isinstance(path, str) or not isinstance(folder, int) or folder < 0:
        return path
    return str(Path(f"/proc/self/fd/{folder}").readlink() / path)


_watch = _Watch()


@contextmanager
def watched(*inside: Path) -> Iterator[None]:
    """Run a case that may write inside of these folders and nowhere else.

    Raises:
        Violation: it wrote elsewhere, started something, unpickled, or took too long.
    """
    _watch.allowed, _watch.found = tuple(f"{os.path.realpath(one)}/" for one in inside), None
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, MOST_WALL_S)
    started = time.process_time()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        _watch.allowed = None
    if _watch.found is not None:
        raise Violation(_watch.found)
    if (took := time.process_time() - started) > MOST_CPU_S:
        raise Violation(f"took {took:.1f} s of the processor")


def _too_long(*_: object) -> None:
    raise Violation(f"lasted more than {MOST_WALL_S:g} s")
