"""Writing into folders that somebody else may have made, or may be changing meanwhile.

Nothing else in jevexp makes, replaces or removes a file. A folder is opened once, without following
a link, and names are looked up in what was opened: whoever renames it or puts a link in its place
meanwhile leads nobody elsewhere. New files and folders are their owner's alone whatever the umask
says, unless the group was given access.
"""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from jevexp.untrusted.files import (
    KINDS,
    NotAFile,
    RefusedPath,
    is_for_group,
    is_group_folder,
    is_trusted,
    set_mode,
    user_name,
)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# No O_CREAT: whether a file is ours to make is decided by `_NEW`. A pipe would be waited for.
_OLD = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TRIES = 100
_NOT_INTO = "and nothing is written into it; give another place"


class Folder:
    """An open folder; use it in a `with` statement.

    Raises:
        RefusedPath: it is a link, or somebody else's; what is in the way of a file is a link, a
            pipe, a device, a socket, a folder or somebody else's.
        OSError: the system refuses.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self.path = path

    @classmethod
    def open(cls, path: Path, above: int | None = None) -> "Folder":
        """Open a folder for writing into it.

        Args:
            path: the folder.
            above: the descriptor of the folder above it, where that is open already.
        """
        descriptor = _open_folder(path, above)
        status = os.fstat(descriptor)
        if not (is_trusted(status) or is_group_folder(status)):
            os.close(descriptor)
            owner = user_name(status.st_uid)
            raise RefusedPath(0, f"is a folder of {owner}, {_NOT_INTO}", str(path))
        return cls(descriptor, path)

    @classmethod
    def named(cls, path: Path) -> "Folder":
        """Open a folder that a person named, made if need be; it may be a link of theirs."""
        make_folders(path)
        return cls.open(path.resolve())

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # As a file does that nobody closed.
        self.close()

    def close(self) -> None:
        """Close the folder; what was opened in it stays open."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def below(self, name: str) -> "Folder":
        """Open a folder in this one; it is made if need be."""
        with suppress(FileExistsError):
            self.make(name)
        return Folder.open(self.path / name, self._descriptor)

    def make(self, name: str) -> None:
        """Make a folder in this one; raises FileExistsError: something of that name is there."""
        group = self._for_group()
        with self._naming(name):
            os.mkdir(name, 0o770 if group else 0o700, dir_fd=self._descriptor)
            descriptor = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=self._descriptor)
        try:
            # The umask may have taken the owner's own rights away.
            set_mode(descriptor, 0o2770 if group else 0o700)
        finally:
            os.close(descriptor)

    def make_private(self) -> None:
        """Take from everybody else, or all but the group, what they may do with this folder."""
        if os.fstat(self._descriptor).st_uid == os.geteuid():
            set_mode(self._descriptor, 0o2770 if self._for_group() else 0o700)

    def create(self, name: str) -> FileIO:
        """Make a file that must not exist yet, and open it for writing, without a buffer.

        Raises FileExistsError: it exists, if only as a link that leads nowhere.
        """
        return self._file(self._make_file(name, os.O_WRONLY), name, "wb")

    def append(self, name: str) -> FileIO:
        """Open a file for reading and for writing at its end; it is made if need be."""
        # Somebody may remove it each time between the look and the opening, but not for ever.
        for _ in range(_TRIES):
            with suppress(FileExistsError):
                return self._file(self._make_file(name, os.O_RDWR | os.O_APPEND), name, "ab+")
            with suppress(FileNotFoundError):
                # A device is not even opened.
                self.check(name)
                return self._file(self._open_old(name), name, "ab+")
        raise RefusedPath(0, "comes and goes; who else is at work there?", str(self.path / name))

    def replace(self, name: str, data: bytes) -> None:
        """Replace a file's content in one step: readers see all of the old or all of the new."""
        with self.replacing(name) as file:
            write_all(file, data)

    @contextmanager
    def replacing(self, name: str, temporary: str | None = None) -> Iterator[FileIO]:
        """A new file without a buffer, which takes the name once it is complete and on disk.

        Args:
            name: what it replaces, if there is such a file.
            temporary: its name until then, for a caller that alone uses it and tidies up by that
                what a killed process left; None: one that nobody can guess.
        """
        self.check(name)
        if temporary is None:
            temporary = f".{name[:100]}.{secrets.token_hex(8)}"
        else:
            with suppress(FileNotFoundError):
                self.remove(temporary)
        try:
            with self.create(temporary) as file:
                yield file
                os.fsync(file.fileno())
            with self._naming(name):
                os.rename(temporary, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except BaseException:
            with suppress(OSError):
                self.remove(temporary)
            raise
        self.sync()

    def remove(self, name: str) -> None:
        """Remove a name; what a link leads to stays. Raises FileNotFoundError: there is none."""
        with self._naming(name):
            os.unlink(name, dir_fd=self._descriptor)

    def remove_folder(self, name: str) -> None:
        """Remove an empty folder in this one."""
        with self._naming(name):
            os.rmdir(name, dir_fd=self._descriptor)

    def sync(self) -> None:
        """Make the folder's names durable, as fsync does for a file's bytes."""
        os.fsync(self._descriptor)

    def check(self, name: str, *, grows: bool = False) -> bool:
        """Whether there is a file that may be written; False where there is nothing.

        Args:
            name: of the file.
            grows: whether it is written into, instead of being replaced.
        """
        try:
            status = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return False
        self._check_file(status, name, grows=grows)
        return True

    def _for_group(self) -> bool:
        return is_for_group(os.fstat(self._descriptor))

    def _file(self, descriptor: int, name: str, mode: str) -> FileIO:
        # Opened by its path only in name, which is what the file is called in messages.
        return FileIO(str(self.path / name), mode, opener=lambda *_: descriptor)

    def _make_file(self, name: str, access: int) -> int:
        mode = 0o660 if self._for_group() else 0o600
        with self._naming(name):
            descriptor = os.open(name, access | _NEW, mode, dir_fd=self._descriptor)
        set_mode(descriptor, mode)
        return descriptor

    def _open_old(self, name: str) -> int:
        with self._naming(name):
            descriptor = os.open(name, os.O_RDWR | os.O_APPEND | _OLD, dir_fd=self._descriptor)
        try:
            self._check_file(os.fstat(descriptor), name, grows=True)
        except RefusedPath:
            os.close(descriptor)
            raise
        return descriptor

    def _check_file(self, status: os.stat_result, name: str, *, grows: bool) -> None:
        path = str(self.path / name)
        kind = stat.S_IFMT(status.st_mode)
        if kind != stat.S_IFREG:
            raise NotAFile(0, f"is {KINDS.get(kind, 'no file')}, {_NOT_INTO}", path)
        if not (is_trusted(status) or self._for_group()):
            raise RefusedPath(0, f"is a file of {user_name(status.st_uid)}, {_NOT_INTO}", path)
        # Replacing a file leaves its other names alone; writing into it does not.
        if grows and status.st_nlink > 1:
            reason = "has a second name (a hard link), whose content would change too; copy it"
            raise RefusedPath(0, reason, path)

    @contextmanager
    def _naming(self, name: str) -> Iterator[None]:
        """Errors name the whole path; relative to a folder the system knows only the last part."""
        try:
            yield
        except OSError as error:
            raise type(error)(error.errno, error.strerror, str(self.path / name)) from error


def make_folders(path: Path) -> None:
    """Make a folder and those above it, as far as they are missing.

    What is there already is the person's own way to it, and may contain links of theirs; from the
    first missing name on no link is followed.

    Raises OSError: it cannot be made, or something else is in its place.
    """
    missing: list[str] = []
    at = path
    while True:
        try:
            descriptor = os.open(at, _FOLDER)
            break
        except FileNotFoundError:
            if at.is_symlink():
                raise NotAFile(0, "is a link that leads nowhere", str(at)) from None
            missing.insert(0, at.name)
            at = at.parent
        except NotADirectoryError as error:
            culprit = next(part for part in (at, *at.parents) if part.exists())
            raise NotADirectoryError(error.errno, "is no folder", str(culprit)) from error
    # Making a folder beside a stranger's files is harmless: /tmp is root's, a team's is anybody's.
    folder = Folder(descriptor, at)
    try:
        for name in missing:
            below = folder.below(name)
            folder.close()
            folder = below
    finally:
        folder.close()


def make_folder(path: Path) -> None:
    """Make a folder in one that is there.

    Raises FileExistsError: something of that name is there.
    """
    with Folder(os.open(path.parent, _FOLDER), path.parent) as folder:
        folder.make(path.name)


def create(path: Path) -> FileIO:
    """`Folder.create` by a path."""
    with Folder.open(path.parent) as folder:
        return folder.create(path.name)


def append(path: Path) -> FileIO:
    """`Folder.append` by a path."""
    with Folder.open(path.parent) as folder:
        return folder.append(path.name)


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet, durably.

    Raises FileExistsError: it exists; nothing was touched.
    """
    with create(path) as file:
        write_durably(file, data)


def replace(path: Path, data: bytes) -> None:
    """`Folder.replace` by a path."""
    with Folder.open(path.parent) as folder:
        folder.replace(path.name, data)


def remove(path: Path, *, missing_ok: bool = False) -> None:
    """`Folder.remove` by a path; with `missing_ok`, there need not be such a file."""
    try:
        with Folder.open(path.parent) as folder:
            folder.remove(path.name)
    except FileNotFoundError:
        if not missing_ok:
            raise


def remove_folder(path: Path) -> None:
    """`Folder.remove_folder` by a path."""
    with Folder.open(path.parent) as folder:
        folder.remove_folder(path.name)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable, as fsync does for a file's bytes."""
    with Folder(_open_folder(path), path) as folder:
        folder.sync()


def write_durably(file: FileIO, data: bytes) -> None:
    """Write all of `data` and force it to disk.

    The file has no buffer: what a full disk refused would be tried again when it is closed.
    """
    write_all(file, data)
    os.fsync(file.fileno())


def write_all(file: FileIO, data: bytes) -> None:
    """Write all of `data` to a file without a buffer, which may take it in parts."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def prepare_database(path: Path, *, read_only: bool = False) -> None:
    """Look at what SQLite is going to open, and make its file if need be.

    SQLite follows links, waits for pipes, makes files that everybody can read, and gives the
    permissions of its file to those beside it. Nothing is opened here: closing it would end this
    process's locks on it.

    Raises OSError: something else than a file of ours is there.
    """
    names = [f"{path.name}{suffix}" for suffix in ("", "-wal", "-shm", "-journal")]
    if read_only:
        for other in map(path.with_name, names):
            if other.is_symlink() or (other.exists() and not other.is_file()):
                raise NotAFile(0, "is no file, and SQLite would open it", str(other))
        return
    with Folder.named(path.parent) as folder:
        for name in names:
            if not folder.check(name, grows=True) and name == path.name:
                with suppress(FileExistsError):
                    folder.create(name).close()


def _open_folder(path: Path, above: int | None = None) -> int:
    name = path if above is None else path.name
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
    except OSError as error:
        if path.is_symlink():
            reason = "is a link, and nothing is written through one; give the folder itself"
            raise NotAFile(0, reason, str(path)) from error
        raise type(error)(error.errno, error.strerror, str(path)) from error
