"""SQLite's files, looked at before SQLite opens them by their names."""

from contextlib import suppress
from pathlib import Path

from jevexp.untrusted.files import NotAFile
from jevexp.untrusted.writing import Folder

_BESIDE = ("", "-wal", "-shm", "-journal")


def prepare_database(path: Path, *, read_only: bool = False) -> None:
    """Look at what SQLite is going to open, and make its file if need be.

    SQLite follows links, waits for pipes, makes files that everybody can read, and gives the
    permissions of its file to those beside it. Nothing is opened here: closing it would end this
    process's locks on it.

    Raises:
        OSError: something else than a file of ours is there.
    """
    names = [f"{path.name}{suffix}" for suffix in _BESIDE]
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
