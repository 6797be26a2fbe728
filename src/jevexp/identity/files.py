"""Opening a file of weights without waiting for anything that is none."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from jevexp.errors import InputError

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


class WeightsError(InputError):
    """A file of weights cannot be used: its path, and what was found there."""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The regular file at `path`, open for reading; what fails while it is read is explained too.

    Raises:
        WeightsError: no such file, not readable, or not a file.
    """
    try:
        with os.fdopen(_open(path), "rb") as file:
            kind = stat.S_IFMT(os.fstat(file.fileno()).st_mode)
            if kind != stat.S_IFREG:
                raise WeightsError(f"{path}: expected a file, found {_KINDS.get(kind, 'none')}")
            yield file
    except IsADirectoryError as error:
        raise WeightsError(f"{path}: expected a file, found a folder") from error
    except OSError as error:
        raise WeightsError(f"{path}: cannot be read: {error.strerror or error}") from error


def _open(path: Path) -> int:
    try:
        # Opening a pipe would otherwise wait for somebody to write into it.
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:
        raise WeightsError(f"{str(path)!r}: no path can hold that: {error}") from error
