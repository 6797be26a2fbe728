"""Stop signals that arrive where no evidence can be lost."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupted(BaseException):
    """SIGINT or SIGTERM arrived; not an Exception, so that no provider swallows it."""

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
    """Holds SIGINT and SIGTERM back except while waiting for a provider.

    Between an answer and its record a signal would lose an answered task, so there it only sets a
    flag that `check` raises from. Outside the main thread, where Python delivers no signals, it
    does nothing.
    """

    def __init__(self) -> None:
        self._pending: int | None = None
        self._waiting = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            for signum in (signal.SIGINT, signal.SIGTERM):
                self._previous[signum] = signal.signal(signum, self._receive)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for signum, handler in self._previous.items():
            signal.signal(signum, handler)
        self._previous.clear()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While in here, a signal raises at once.

        Raises:
            Interrupted: a signal arrived before or inside.
        """
        self._waiting = True
        try:
            self.check()
            yield
        finally:
            self._waiting = False

    @property
    def pending(self) -> Interrupted | None:
        """The signal that has arrived, if one has."""
        return None if self._pending is None else Interrupted(self._pending)

    def check(self) -> None:
        """Raise Interrupted if a signal has arrived."""
        if arrived := self.pending:
            raise arrived

    def _receive(self, signum: int, _frame: FrameType | None) -> None:
        self._pending = signum
        if self._waiting:
            # Once: a second signal must not break off what the first one made the provider clean.
            self._waiting = False
            raise Interrupted(signum)
