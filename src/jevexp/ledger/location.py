"""Where a ledger is: a file or a database, and whether the locks of that place can be trusted."""

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jevexp.errors import InputError
from jevexp.ledger.base import Ledger
from jevexp.ledger.file import FileLedger
from jevexp.ledger.state import LedgerError
from jevexp.untrusted.writing import Folder, make_folders, prepare_database

# File systems that other machines write to as well. Whether their locks reach those machines
# depends on mount options and servers that cannot be seen from here; FUSE may be anything.
_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|smb3|9p|afs|ceph|lustre|gpfs|beegfs|glusterfs|gfs2?|ocfs2|pvfs2|"
    r"orangefs|panfs|virtiofs|vboxsf|prl_fs|fuse(blk)?(\..*)?"
)
_TRY = """
import fcntl, sys
try:
    fcntl.flock(open(sys.argv[1], "rb"), fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit(1)
"""


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """A ledger's file; as text, its path.

    `on_network` says whether it may lie on a network file system, `shared` whether more than one
    process may use it.
    """

    path: Path
    on_network: bool = False
    shared: bool = True

    def __str__(self) -> str:
        return str(self.path)

    @property
    def exists(self) -> bool:
        """Whether there is a ledger."""
        return self.path.exists()

    def check(self) -> None:
        """Check that the ledger can be used, and make nothing.

        Raises InputError: its locks cannot be trusted.
        """
        if self.shared:
            with _named("caps.ledger"):
                check_locks(self.path, allow_network=self.on_network)

    def open(
        self, cap_usd: float, *, own_rows: Path | None = None, read_only: bool = False
    ) -> FileLedger:
        """Open the ledger; it is made where it does not exist.

        Raises InputError: it cannot be used.
        """
        with _named("caps.ledger", self.path):
            if not read_only:
                make_folders(self.path.parent)
                self.check()
            return FileLedger(self.path, cap_usd, own_rows=own_rows, read_only=read_only)


@dataclass(frozen=True, slots=True)
class LedgerDatabase:
    """A ledger's database, SQLite or PostgreSQL; as text, its address, which holds no password.

    `password_env` names the environment variable that holds the password, if one is needed.
    """

    url: str
    password_env: str | None = None

    def __str__(self) -> str:
        return self.url

    @property
    def exists(self) -> bool:
        """Whether there can be a ledger: SQLite would make a file for whoever asks."""
        path = sqlite_path(self.url)
        return path is None or path.exists()

    def check(self) -> None:
        """Check that the ledger can be used, and make nothing.

        Raises InputError: the password is missing, or SQLite's file has no locks to trust.
        """
        self._password()
        if path := sqlite_path(self.url):
            with _named("caps.ledger_url"):
                check_locks(path, allow_network=False)

    def open(
        self, cap_usd: float, *, own_rows: Path | None = None, read_only: bool = False
    ) -> Ledger:
        """Open the ledger; its tables are made where they do not exist.

        Raises InputError: it cannot be used.
        """
        self.check()
        with _named("caps.ledger_url"):
            from sqlalchemy.engine import make_url

            from jevexp.ledger.database import DatabaseLedger

            url = make_url(self.url)
            if url.get_backend_name() == "postgresql":
                import psycopg  # noqa: F401 - says whether the extra is installed

                url = url.set(drivername="postgresql+psycopg", password=self._password())
            elif path := sqlite_path(self.url):
                prepare_database(path, read_only=read_only)
            return DatabaseLedger(url, cap_usd, own_rows=own_rows, read_only=read_only)

    def _password(self) -> str | None:
        if self.password_env is None:
            return None
        if not (password := os.environ.get(self.password_env)):
            raise InputError(
                f"caps.ledger_password_env: {self.password_env} is not set in the environment"
            )
        return password


LedgerLocation = LedgerFile | LedgerDatabase


@contextmanager
def _named(setting: str, place: Path | None = None) -> Iterator[None]:
    """Raise errors of a ledger as errors of the setting that names it."""
    try:
        yield
    except ImportError as error:
        raise InputError(
            f"{setting}: {error.name} is not installed; pip install 'jevexp[postgres]'"
        ) from error
    except LedgerError as error:
        raise InputError(f"{setting}: {error}") from error
    except OSError as error:
        raise InputError(f"{setting}: {place or error.filename}: {error.strerror}") from error


def sqlite_path(url: str) -> Path | None:
    """The file of a SQLite address; None for any other."""
    kind, separator, path = url.partition(":///")
    return Path(path) if separator and kind.partition("+")[0] == "sqlite" else None


def ledger_database(url: str, password_env: str | None) -> LedgerDatabase:
    """The database at a configured address; a relative path of SQLite's becomes absolute."""
    path = sqlite_path(url)
    return LedgerDatabase(f"sqlite:///{path.absolute()}" if path else url, password_env)


def check_locks(path: Path, *, allow_network: bool) -> None:
    """Refuse a file on a network file system, or one there whose lock excludes nobody.

    Args:
        path: the ledger's file, which need not exist.
        allow_network: the person says that locks work between all machines that share it.

    Raises LedgerError: with the file system's kind.
    """
    kind = file_system(path)
    if kind is None or not _NETWORK.fullmatch(kind):
        return
    if not allow_network:
        raise LedgerError(
            f"{path}: lies on {kind}, where locks may not reach every machine; use a local disk or "
            "caps.ledger_url, or set caps.ledger_on_network=true if you know that they do"
        )
    if not lock_excludes(path):
        raise LedgerError(f"{path}: locks on this {kind} exclude nobody; use caps.ledger_url")


def file_system(path: Path) -> str | None:
    """The kind of file system that a path lies on; None where the system does not say."""
    import psutil

    try:
        mounts = psutil.disk_partitions(all=True)
    except (psutil.Error, OSError):
        return None
    resolved = path.resolve()
    around = [mount for mount in mounts if resolved.is_relative_to(mount.mountpoint)]
    # The innermost is the last; the later of two mounts on one point hides the other.
    around.sort(key=lambda mount: len(Path(mount.mountpoint).parts))
    return around[-1].fstype if around else None


def lock_excludes(path: Path) -> bool:
    """Whether a lock that is held here keeps another process from taking it."""
    with Folder.named(path.parent) as folder, folder.append(path.name) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        completed = subprocess.run([sys.executable, "-I", "-S", "-c", _TRY, str(path)], check=False)
    return completed.returncode == 1
