"""Files and folders that a stranger may have made: reading them, and telling whose they are.

Only regular files are read, and never more than fits into memory.
"""

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
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

_ROOT = 0
# Whether the group gets access to new files and folders; `permissions` sets it.
_for_group = False


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
    """The regular file at `path`, open for reading; errors as of `open_file`."""
    with open_file(path, follow_links=follow_links) as file:
        yield file


def open_file(path: Path, *, follow_links: bool = True) -> BufferedReader:
    """Open the regular file at `path`, for a caller that closes it at another place.

    A pipe would be waited for, and a device never ends.

    Args:
        path: the file.
        follow_links: whether a link at `path` leads on to what it names.

    Raises:
        NotAFile: it is something else than a regular file.
        OSError: it is not there, or cannot be read.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags if follow_links else flags | os.O_NOFOLLOW)
    except ValueError as error:
        raise NotAFile(0, f"no path can hold that: {error}", ascii(str(path))) from error
    except OSError as error:
        if not follow_links and path.is_symlink():
            raise NotAFile(0, "expected a file, found a link", str(path)) from error
        raise
    try:
        kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
        if kind != stat.S_IFREG:
            raise NotAFile(0, f"expected a file, found {KINDS.get(kind, 'none')}", str(path))
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

    Raises TooLong: a line holds more than `most` bytes; names its number.
    """
    number = 0
    while line := stream.readline(most + 1):
        number += 1
        if len(line) > most:
            raise TooLong(most, number)
        yield number, line


def whole_lines(stream: BinaryIO, *, most: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes]]:
    r"""`numbered_lines` up to a last one without its `\n`, which a killed process leaves behind."""
    for number, line in numbered_lines(stream, most=most):
        if not line.endswith(b"\n"):
            return
        yield number, line


@contextmanager
def permissions(*, group: bool) -> Iterator[None]:
    """New files are their owner's alone meanwhile, or the group's as well.

    This holds for the whole process, and for libraries and programs that it starts: MLflow and the
    pinned harness make files too.
    """
    global _for_group  # noqa: PLW0603  as much a property of the process as its umask
    before, umask = _for_group, os.umask(0o007 if group else 0o077)
    _for_group = group
    try:
        yield
    finally:
        _for_group = before
        os.umask(umask)


def permissions_of(folder: Path) -> AbstractContextManager[None]:
    """What libraries make meanwhile is the group's where the folder is, or as it is now."""
    try:
        return permissions(group=is_for_group(folder.stat()))
    except OSError:
        return permissions(group=_for_group)


def is_for_group(folder: os.stat_result) -> bool:
    """Whether what is made in a folder now is the group's as well."""
    return _for_group or is_group_folder(folder)


def is_group_folder(status: os.stat_result) -> bool:
    """Whether a folder is its group's: writable by it, and handing the group on to what is in it.

    That is how `permissions(group=True)` makes folders, and how a person makes one for a team.
    """
    bits = stat.S_ISGID | stat.S_IRWXG
    return stat.S_ISDIR(status.st_mode) and status.st_mode & bits == bits


def is_trusted(status: os.stat_result) -> bool:
    """Whether a file or folder is this user's, or root's, who can do everything anyway."""
    return status.st_uid in (os.geteuid(), _ROOT)


def set_mode(descriptor: int, mode: int) -> None:
    """Set the permissions of an open file, whatever the umask says."""
    # A file system without permissions has none to give.
    with suppress(OSError):
        os.fchmod(descriptor, mode)


def user_name(uid: int) -> str:
    """A user for a message, by name where the system knows one."""
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user number {uid}"
