"""Reading files that a stranger may have written: regular ones, and never more than fits."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

# Far above any real task or record, so that a file without line ends cannot fill the memory.
MAX_LINE_BYTES = 16 << 20
# A manifest, or one task's request and response: a line and what a provider wraps around it.
MAX_DOCUMENT_BYTES = 64 << 20

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a link",
}


class RefusedPath(OSError):
    """A file or folder that is not touched; `strerror` says why, and the way out."""


class NotAFile(RefusedPath):
    """Something else than a regular file; `strerror` says what."""


class TooLong(ValueError):
    """More bytes than are read; `line` is the number of the line, or None for a whole file."""

    def __init__(self, most: int, line: int | None = None) -> None:
        super().__init__(f"longer than {most} bytes")
        self.line = line


@contextmanager
def opened(path: Path, *, follow_links: bool = True) -> Iterator[BufferedReader]:
    """The regular file at `path`, open for reading.

    A pipe would be waited for, and a device never ends.

    Args:
        path: the file.
        follow_links: whether a link at `path` leads on to what it names.

    Raises:
        NotAFile: it is something else than a regular file.
        OSError: it is not there, or cannot be read.
    """
    with open_file(path, follow_links=follow_links) as file:
        yield file


def open_file(path: Path, *, follow_links: bool = True) -> BufferedReader:
    """As `opened`, for whoever closes the file at another place."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags if follow_links else flags | os.O_NOFOLLOW)
    except ValueError as error:
        raise NotAFile(0, f"no path can hold that: {error}", ascii(str(path))) from error
    except OSError as error:
        if not follow_links and path.is_symlink():
            raise _not_a_file(stat.S_IFLNK, path) from error
        raise
    try:
        kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
        if kind != stat.S_IFREG:
            raise _not_a_file(kind, path)
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def read_document(
    path: Path, *, most: int = MAX_DOCUMENT_BYTES, follow_links: bool = True
) -> bytes:
    """The bytes of a file that is read as a whole.

    Raises:
        TooLong: it holds more than `most` bytes.
        OSError: there is no such regular file, or it cannot be read.
    """
    with opened(path, follow_links=follow_links) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise TooLong(most)
    return data


def numbered_lines(stream: BinaryIO, *, most: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes]]:
    r"""The lines with their numbers from 1 on; each with its `\n`, which the last may lack.

    Raises:
        TooLong: a line holds more than `most` bytes; names its number.
    """
    number = 0
    while raw := stream.readline(most + 1):
        number += 1
        if len(raw) > most:
            raise TooLong(most, number)
        yield number, raw


def whole_lines(stream: BinaryIO, *, most: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes]]:
    r"""`numbered_lines` up to a last one without its `\n`, which a killed process leaves behind.

    Raises:
        TooLong: a line holds more than `most` bytes; names its number.
    """
    for number, line in numbered_lines(stream, most=most):
        if not line.endswith(b"\n"):
            return
        yield number, line


def _not_a_file(kind: int, path: Path) -> NotAFile:
    return NotAFile(0, f"expected a file, found {KINDS.get(kind, 'none')}", str(path))
