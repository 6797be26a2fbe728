"""Whose a file or a folder is, and whose those are that are made."""

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

_ROOT = 0
# Whether the group gets access to what is made now; `permissions` sets it.
_for_group = False


@contextmanager
def permissions(*, group: bool) -> Iterator[None]:
    """Files that are made meanwhile are their owner's alone, or the group's as well.

    This holds for the whole process, and for libraries and programs that it starts: MLflow and the
    pinned harness make files too.
    """
    global _for_group  # noqa: PLW0603  as much a property of the process as its umask
    before = _for_group, os.umask(0o007 if group else 0o077)
    _for_group = group
    try:
        yield
    finally:
        _for_group = before[0]
        os.umask(before[1])


def permissions_of(folder: Path) -> AbstractContextManager[None]:
    """What libraries make meanwhile is the group's where the folder is, or as it is now."""
    return permissions(group=_for_group or is_groups(folder))


def is_groups(path: Path) -> bool:
    """Whether a folder is its group's: writable by it, and handing the group on to what is in it.

    That is how `permissions(group=True)` makes folders, and how a person makes one for a team.
    """
    try:
        return is_group_folder(path.stat())
    except OSError:
        return False


def is_for_group(folder: os.stat_result) -> bool:
    """Whether what is made in a folder now is the group's as well."""
    return _for_group or is_group_folder(folder)


def is_trusted(status: os.stat_result) -> bool:
    """Whether it is ours, or of the one who can do everything anyway."""
    return status.st_uid in (os.geteuid(), _ROOT)


def is_group_folder(status: os.stat_result) -> bool:
    """As `is_groups`, of what the system says about a folder."""
    bits = stat.S_ISGID | stat.S_IRWXG
    return stat.S_ISDIR(status.st_mode) and status.st_mode & bits == bits


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
