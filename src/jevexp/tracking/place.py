"""Where runs are logged, as far as the address says it, and which databases are a person's own."""

import hashlib
import os
import re
import secrets
import shlex
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from jevexp.store.cache import state_folder
from jevexp.tracking.protocol import TrackingError
from jevexp.untrusted.files import opened
from jevexp.untrusted.writing import Folder, write_all

DATABASE = "mlflow.db"
ARTIFACTS = "mlartifacts"
SQLITE = "sqlite:///"
# Programs disagree about addresses that hold these.
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f\\?#;]")
# Where SQLite keeps the number that an application may give a file (sqlite.org/fileformat2.html).
_MARK = slice(68, 72)


@dataclass(frozen=True, slots=True)
class Place:
    """An MLflow store.

    Attributes:
        uri: MLflow's tracking URI, always set: its default moves with the working directory.
        artifacts: where a new experiment keeps its files; None leaves that to the server.
        lock: held while the store is opened; None where a server looks after itself.
        named: whether a person gave the address; else it is the database in the folder of runs,
            whosever that is.
    """

    uri: str
    artifacts: str | None
    lock: Path | None
    named: bool = True

    @classmethod
    def of(cls, uri: str | None, outputs: Path) -> "Place":
        """The store at `uri`; without one, the database in the folder of runs."""
        named = uri is not None
        if uri is None:
            uri = f"{SQLITE}{outputs.absolute() / DATABASE}"
        if uri.startswith(SQLITE):
            database = Path(uri.removeprefix(SQLITE)).absolute()
            # Beside the database, or files end up in whatever directory the first run had.
            artifacts = database.with_name(ARTIFACTS).as_uri()
            lock = database.with_name(f"{database.name}.lock")
            return cls(f"{SQLITE}{database}", artifacts, lock, named)
        if uri.startswith(("http://", "https://", "databricks")):
            return cls(uri, None, None)
        folder = outputs.absolute()
        return cls(uri, (folder / ARTIFACTS).as_uri(), folder / f"{DATABASE}.lock")

    @property
    def database(self) -> Path | None:
        """The file of an SQLite database."""
        path = self.uri.removeprefix(SQLITE)
        return None if path == self.uri else Path(path)

    @property
    def served(self) -> bool:
        """Whether a server is behind the URI, with a user interface of its own."""
        return self.uri.startswith(("http://", "https://"))

    @property
    def apart(self) -> bool:
        """Whether another machine may be behind it, which is talked to in a process of its own."""
        return self.database is None

    @property
    def reads_home(self) -> bool:
        """Whether its login may stand in a file of the home folder, as `~/.pgpass`."""
        return not self.served and self.database is None

    def check_own(self) -> None:
        """Refuse a database that is only found beside runs, unless it is known to be this user's.

        It may have come with somebody else's runs, and would choose where their files are sent.

        Raises:
            TrackingError: nothing says that this user made it.
        """
        database = self.database
        if self.named or database is None or not os.path.lexists(database):
            return
        if not is_own(database):
            uri = shlex.quote(self.uri)
            raise TrackingError(
                f"{database}: nothing says that this database is yours, and one that came with "
                "somebody else's runs could send your files elsewhere; if you trust it, name it: "
                f"tracking.uri={uri} for runs, --uri {uri} for other commands"
            )

    def holds(self, location: str) -> bool:
        """Whether files that are kept at `location` go where the address says, and nowhere else.

        Args:
            location: of an experiment's or a run's artifacts, as the store gives it.
        """
        if _AMBIGUOUS.search(location):
            return False
        try:
            parts = urlsplit(location)
        except ValueError:
            return False
        if self.artifacts is not None:
            return parts.scheme == "file" and not parts.netloc and self._is_beside(parts.path)
        if self.served:
            below = location.startswith(f"{self.uri.rstrip('/')}/")
            return below or (parts.scheme == "mlflow-artifacts" and not parts.netloc)
        return parts.scheme == "dbfs" and not parts.netloc

    def _is_beside(self, path: str) -> bool:
        root = Path(url2pathname(urlsplit(self.artifacts or "").path)).resolve()
        return Path(url2pathname(path)).resolve().is_relative_to(root)


def make_own(database: Path) -> None:
    """Make an empty database that is known to be this user's from the moment it is there.

    Raises:
        TrackingError: it cannot be made, or not be remembered; or what SQLite would take for an
            unfinished change of it is there, and could put anything into it.
    """
    for name in (f"{database.name}{suffix}" for suffix in ("-journal", "-wal", "-shm")):
        if os.path.lexists(database.with_name(name)):
            raise TrackingError(
                f"{database.with_name(name)}: is left of another database, which is not there; "
                "move it away"
            )
    with closing(sqlite3.connect(":memory:")) as memory:
        # A random number, so that no other file that takes its place is mistaken for it.
        memory.execute(f"PRAGMA application_id = {secrets.randbelow(2**31 - 1) + 1}")
        content = memory.serialize()
    try:
        with (
            Folder.named(database.parent) as folder,
            folder.replacing(database.name) as file,
        ):
            write_all(file, content)
            _remember(database, os.fstat(file.fileno()).st_ino, content[_MARK])
    except OSError as error:
        raise TrackingError(f"{error.filename or database}: {error.strerror}") from error


def adopt(database: Path) -> None:
    """Remember that a person said that a database is theirs to log to."""
    if not is_own(database):
        try:
            with opened(database, follow_links=False) as file:
                _remember(database, os.fstat(file.fileno()).st_ino, file.read(100)[_MARK])
        except OSError:
            # It was named, and can be named again.
            return


def is_own(database: Path) -> bool:
    """Whether this user made a database, or had runs logged to it by its name.

    What says so is in the user's own folder, where nobody else's files come; it holds for the
    file as it was made: copied or moved it is a stranger's until it is named.
    """
    try:
        with opened(database, follow_links=False) as file:
            entry = _entry(database, os.fstat(file.fileno()).st_ino, file.read(100)[_MARK])
    except OSError:
        return False
    return (_registry() / entry).is_file()


def _remember(database: Path, inode: int, mark: bytes) -> None:
    with Folder.named(_registry()) as folder:
        folder.replace(_entry(database, inode, mark), f"{database}\n".encode(errors="replace"))


def _entry(database: Path, inode: int, mark: bytes) -> str:
    # The number of the file system changes with every start of some machines.
    resolved = database.parent.resolve() / database.name
    text = f"{resolved}\n{inode}\n{mark.hex()}"
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _registry() -> Path:
    return state_folder() / "tracking"
