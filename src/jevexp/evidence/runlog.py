"""run.log: what jevexp itself did, and the traceback where it crashed."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOGGER = logging.getLogger("jevexp")


@contextmanager
def run_log(path: Path) -> Iterator[None]:
    """Send jevexp's own log to a new file, and nobody else's.

    Libraries log request addresses and headers; none of that belongs into evidence.

    Raises:
        FileExistsError: the file exists.
    """
    handler = logging.FileHandler(path, mode="x", encoding="utf-8")
    formatter = logging.Formatter("%(asctime)sZ %(levelname)s %(name)s: %(message)s")
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
