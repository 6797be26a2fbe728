"""Stop signals that arrive where no evidence can be lost."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from types import FrameType
from typing import Any


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP arrived; not an Exception, so that no provider swallows it."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum

    def __str__(self) -> str:
        return signal.Signals(self.signum).name

    @property
    def exit_status(self) -> int:
        """The shell's convention: 128 plus the signal's number."""
        return 128 + self.signum


class Interrupts:
    """Holds stop signals back, so that none of them costs evidence.

    Between an answer and its record a signal would lose an answered task, so there it only sets a
    flag that `check` raises from. The first SIGINT lets the task in flight come to its record; a
    second one breaks the wait off, and so do SIGTERM and SIGHUP at once, since whoever sends those
    kills soon after. Outside the main thread, where Python delivers no signals, nothing is held.

    Args:
        notice: called once, inside the signal handler or before a request, when the run goes on
            only to finish the task in flight.
    """

    def __init__(self, notice: Callable[[], None] = lambda: None) -> None:
        self._notice = notice
        self._pending: int | None = None
        self._noticed = False
        self._hurried = False
        # Whether a second signal has arrived: somebody wants an end at once.
        self.impatient = False
        self._breakable = _Breakable.NEVER
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                # Under nohup a lost terminal is to change nothing.
                if signum == signal.SIGHUP and signal.getsignal(signum) == signal.SIG_IGN:
                    continue
                self._previous[signum] = signal.signal(signum, self._receive)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for signum, handler in self._previous.items():
            signal.signal(signum, handler)
        self._previous.clear()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While in here, with no task in flight, any signal raises at once.

        Raises Interrupted: a signal arrived before or inside.
        """
        with self._breaking(_Breakable.BY_ANY):
            self.check()
            yield

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While in here, with a task in flight, a first SIGINT waits and anything else raises.

        Raises Interrupted: a signal that does not wait arrived before or inside.
        """
        with self._breaking(_Breakable.BY_HURRIED):
            if self._hurried:
                self.check()
            if self._pending is not None:
                self._notice_once()
            yield

    @property
    def pending(self) -> Interrupted | None:
        """The signal that has arrived, if one has."""
        return None if self._pending is None else Interrupted(self._pending)

    def check(self) -> None:
        """Raise Interrupted if a signal has arrived."""
        if arrived := self.pending:
            raise arrived

    @contextmanager
    def _breaking(self, breakable: "_Breakable") -> Iterator[None]:
        self._breakable = breakable
        try:
            yield
        finally:
            self._breakable = _Breakable.NEVER

    def _receive(self, signum: int, _frame: FrameType | None) -> None:
        self.impatient = self._pending is not None
        self._hurried = self.impatient or signum != signal.SIGINT
        self._pending = signum
        if self._breakable is _Breakable.BY_ANY or (
            self._breakable is _Breakable.BY_HURRIED and self._hurried
        ):
            # Once: a second signal must not break off what the first one made the provider clean.
            self._breakable = _Breakable.NEVER
            raise Interrupted(signum)
        if self._breakable is _Breakable.BY_HURRIED:
            self._notice_once()

    def _notice_once(self) -> None:
        if not self._noticed:
            self._noticed = True
            self._notice()


class _Breakable(Enum):
    """Which signals may break off what is going on."""

    NEVER = auto()
    BY_HURRIED = auto()
    BY_ANY = auto()
