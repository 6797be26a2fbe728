"""Where MLflow's store is, whether it can be logged to, and which databases are a person's own."""

import hashlib
import os
import re
import secrets
import shlex
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from jevexp.store.cache import state_folder
from jevexp.tracking import TrackingError
from jevexp.untrusted.files import opened
from jevexp.untrusted.writing import Folder, write_all

OUTPUTS = "outputs"
DATABASE = "mlflow.db"
ARTIFACTS = "mlartifacts"
SQLITE = "sqlite:///"
# The page itself is not read.
_MOST_HEALTH_BYTES = 64 << 10
# Programs disagree about addresses that hold these.
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f\\?#;]")
# Where SQLite keeps the number that an application may give a file (sqlite.org/fileformat2.html).
_MARK = slice(68, 72)


@dataclass(frozen=True, slots=True)
class StoreLocation:
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
    def of(cls, uri: str | None, outputs: Path) -> "StoreLocation":
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
        return Path(self.uri.removeprefix(SQLITE)) if self.uri.startswith(SQLITE) else None

    @property
    def served(self) -> bool:
        """Whether a server is behind the URI, with a user interface of its own."""
        return self.uri.startswith(("http://", "https://"))

    def check_own(self) -> None:
        """Refuse a database that is only found beside runs, unless it is known to be this user's.

        It may have come with somebody else's runs, and would choose where files are sent.

        Raises TrackingError: nothing says that this user made it.
        """
        database = None if self.named else self.database
        if database is not None and os.path.lexists(database) and not is_own(database):
            uri = shlex.quote(self.uri)
            raise TrackingError(
                f"{database}: nothing says that this database is yours, and one that came with "
                "somebody else's runs could send your files elsewhere; if you trust it, name it: "
                f"tracking.uri={uri} for runs, --uri {uri} for other commands"
            )

    def holds(self, location: str) -> bool:
        """Whether files at `location`, as the store gives it, are where the address says."""
        if _AMBIGUOUS.search(location):
            return False
        try:
            parts = urlsplit(location)
        except ValueError:
            return False
        if self.artifacts is not None:
            root = local_path(self.artifacts).resolve()
            beside = local_path(location).resolve().is_relative_to(root)
            return parts.scheme == "file" and not parts.netloc and beside
        if self.served:
            below = location.startswith(f"{self.uri.rstrip('/')}/")
            return below or (parts.scheme == "mlflow-artifacts" and not parts.netloc)
        return parts.scheme == "dbfs" and not parts.netloc

    def check(self, timeout_s: float) -> str:
        """Where runs would be logged; MLflow itself would create or migrate a database.

        Raises TrackingError: a run could not be logged there.
        """
        database = self.database
        if self.served:
            ask_health(self.uri, timeout_s)
            return f"{self.uri} answers"
        self.check_own()
        if database is None:
            return f"{self.uri} is asked by the first run"
        exists = database.exists()
        above = next(folder for folder in database.parents if folder.exists())
        for path in [database, above] if exists else [above]:
            if not os.access(path, os.W_OK):
                raise TrackingError(f"{path}: cannot be written")
        if not exists:
            return f"{database} is made by the first run"
        try:
            with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
                connection.execute("SELECT experiment_id FROM experiments LIMIT 1")
        except sqlite3.Error as error:
            raise TrackingError(f"{database}: not MLflow's database: {error}") from error
        return str(database)


def local_path(uri: str) -> Path:
    """The path of a `file:` URI."""
    return Path(url2pathname(urlsplit(uri).path))


def ask_health(uri: str, timeout_s: float) -> None:
    """Ask a server whether it is there; behind a login even this page may be refused.

    Raises TrackingError: it does not answer within the time, or answers with a server's error.
    """
    import httpx

    from jevexp.untrusted.http import Bounds, bounded_client

    bounds = Bounds()
    try:
        with (
            bounded_client(bounds, uri, httpx.Timeout(timeout_s)) as client,
            bounds.within(timeout_s, _MOST_HEALTH_BYTES),
            client.stream("GET", f"{uri.rstrip('/')}/health") as response,
        ):
            status = response.status_code
    except httpx.TimeoutException as error:
        raise TrackingError(f"{uri}: no answer within {timeout_s:g} s") from error
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise TrackingError(f"{uri}: cannot be reached: {error}") from error
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        raise TrackingError(f"{uri}: answers with status {status}")


def make_own(database: Path) -> None:
    """Make an empty database that is known to be this user's from the moment it is there.

    Raises TrackingError: it cannot be made, or not be remembered; or what SQLite would take for an
    unfinished change of it is there, and could put anything into it.
    """
    for suffix in ("-journal", "-wal", "-shm"):
        rest = database.with_name(f"{database.name}{suffix}")
        if os.path.lexists(rest):
            raise TrackingError(
                f"{rest}: is left of another database, which is not there; move it away"
            )
    with closing(sqlite3.connect(":memory:")) as memory:
        # A random number, so that no other file that takes its place is mistaken for it.
        memory.execute(f"PRAGMA application_id = {secrets.randbelow(2**31 - 1) + 1}")
        content = memory.serialize()
    try:
        with Folder.named(database.parent) as folder, folder.replacing(database.name) as file:
            write_all(file, content)
            _remember(database, _entry(database, file.fileno(), content))
    except OSError as error:
        raise TrackingError(f"{error.filename or database}: {error.strerror}") from error


def adopt(database: Path) -> None:
    """Remember that a person said that a database is theirs to log to."""
    # One that cannot be remembered was named, and can be named again.
    with suppress(OSError):
        if not is_own(database):
            _remember(database, _entry_of(database))


def is_own(database: Path) -> bool:
    """Whether this user made a database, or had runs logged to it by its name.

    What says so is in the user's own folder, where nobody else's files come; it holds for the
    file as it was made: copied or moved it is a stranger's until it is named.
    """
    try:
        return _entry_of(database).is_file()
    except OSError:
        return False


def _remember(database: Path, entry: Path) -> None:
    with Folder.named(entry.parent) as folder:
        folder.replace(entry.name, f"{database}\n".encode(errors="replace"))


def _entry_of(database: Path) -> Path:
    with opened(database, follow_links=False) as file:
        return _entry(database, file.fileno(), file.read(100))


def _entry(database: Path, descriptor: int, content: bytes) -> Path:
    """Where a database is remembered: by its path, its file, and its random number."""
    # The number of the file system changes with every start of some machines.
    inode = os.fstat(descriptor).st_ino
    text = f"{database.parent.resolve() / database.name}\n{inode}\n{content[_MARK].hex()}"
    name = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
    return state_folder() / "tracking" / name
