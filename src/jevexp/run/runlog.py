"""run.log: what jevexp itself did, and the traceback where it crashed."""

import logging
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import TextIO

from jevexp.untrusted.writing import create

LOGGER = logging.getLogger("jevexp")

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class _Formatter(logging.Formatter):
    """Tracebacks with places and classes, and without messages.

    A provider's message may hold an address, a path or a key, and the log is evidence.
    """

    def formatException(self, ei: ExcInfo) -> str:  # noqa: N802  logging's own name
        """The calls that led to the error, and to what it came from."""
        lines = []
        error = ei[1]
        seen: set[int] = set()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            lines += [line.rstrip("\n") for line in traceback.format_tb(error.__traceback__)]
            lines.append(_words(error))
            error = error.__cause__ or error.__context__
            if error is not None:
                lines.append("which came from:")
        return "\n".join(lines)


class _Handler(logging.StreamHandler[TextIO]):
    """Writes the log, or loses a line of it.

    Where the disk is full the run itself says so, in one line.
    """

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  logging's own name
        """Say nothing; logging would print a traceback on the terminal."""


def _words(error: BaseException) -> str:
    """The error's class; of the operating system's errors also what the system says."""
    name = type(error).__name__
    return f"{name}: {error.strerror}" if isinstance(error, OSError) and error.errno else name


@contextmanager
def run_log(path: Path) -> Iterator[None]:
    """Send jevexp's own log to a new file, and nobody else's.

    Libraries log request addresses and headers; none of that belongs into evidence.

    Raises:
        FileExistsError: the file exists.
    """
    file = TextIOWrapper(BufferedWriter(create(path)), encoding="utf-8", errors="backslashreplace")
    handler = _Handler(file)
    formatter = _Formatter("%(asctime)sZ %(levelname)s %(name)s: %(message)s")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    level, propagate = LOGGER.level, LOGGER.propagate
    LOGGER.setLevel(logging.INFO)
    # The terminal has its own words for what matters.
    LOGGER.propagate = False
    LOGGER.addHandler(handler)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)
        LOGGER.propagate = propagate
        handler.close()
        with suppress(OSError):
            file.close()
