"""The tracker that writes to MLflow."""

import fcntl
import os
import shlex
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.settings import Tracking
from jevexp.store import RunDirectory
from jevexp.store.directory import MANIFEST
from jevexp.tracking.child import ChildStore
from jevexp.tracking.content import Content, read
from jevexp.tracking.conversation import login
from jevexp.tracking.links import DEFAULT_PORT, Links, make_links
from jevexp.tracking.place import Place, adopt
from jevexp.tracking.protocol import NOTHING, RunReport, SweepComparison, TrackedRun, TrackingError
from jevexp.tracking.store import MlflowStore, ask_health
from jevexp.untrusted.files import open_file
from jevexp.untrusted.locks import holder


class MlflowTracker:
    """Logs run directories to one experiment of one MLflow store.

    A database on this machine is written in this process. Everything else is asked in a process of
    its own, whose time and memory are bounded.
    """

    def __init__(self, settings: Tracking, outputs: Path) -> None:
        self.place = Place.of(settings.uri, outputs)
        self._settings = settings
        self._outputs = outputs
        kind: type[ChildStore | MlflowStore] = ChildStore if self.place.apart else MlflowStore
        self._store = kind(settings, self.place, login(settings))

    def log(
        self,
        directory: RunDirectory,
        tasks: Sequence[Task] | None = None,
        report: RunReport = NOTHING,
    ) -> TrackedRun:
        """Log a finished run from its directory; once, however often it is called.

        Raises:
            TrackingError: it could not be logged; the directory is untouched.
        """
        with self._store.watching(), _only_logger_of(directory):
            run = self._store.write(self._read(directory, tasks, report))
        if self.place.named and self.place.database is not None:
            adopt(self.place.database)
        return run

    def log_comparison(self, comparison: SweepComparison) -> TrackedRun:
        """Log the comparison of a sweep as a run of its own; once, however often it is called.

        Raises:
            TrackingError: it could not be logged.
        """
        with self._store.watching(), _only_logger_of(comparison.runs[0]):
            return self._store.write_comparison(comparison)

    def runs(self, sweep: str | None = None) -> list[TrackedRun]:
        """The runs of a sweep, oldest first; without one, the newest runs worth comparing.

        Raises:
            TrackingError: the store cannot be asked.
        """
        return self._store.find_runs(sweep)

    def comparisons(self, runs: Sequence[TrackedRun]) -> list[TrackedRun]:
        """The comparison of the sweep that the first of these runs belongs to, if there is one.

        Raises:
            TrackingError: the store cannot be asked.
        """
        return self._store.find_comparison(runs[0]) if runs else []

    def select(self, where: str) -> list[TrackedRun]:
        """All runs that a filter in MLflow's language selects, oldest first.

        Raises:
            TrackingError: the store cannot be asked, or does not understand the filter.
        """
        return self._store.select(where)

    def fetch(self, run_id: str, into: Path) -> RunDirectory:
        """The directory that a run was logged from, if it is here and unchanged; else a copy.

        Raises:
            TrackingError: there is no such run, or its files are not those that were logged.
        """
        return self._store.fetch(run_id, into)

    def check_own(self) -> None:
        """Refuse a database that is only found beside runs and may be somebody else's.

        Raises:
            InputError: naming it, and how a person says that it is theirs.
        """
        try:
            self.place.check_own()
        except TrackingError as error:
            raise InputError(str(error)) from error

    def check(self) -> str:
        """Where runs would be logged, in words; nothing is made or changed.

        Raises:
            TrackingError: a run could not be logged.
        """
        return check_place(self.place, self._settings.timeout_s)

    def links(
        self,
        runs: Sequence[TrackedRun],
        base: str | None = None,
        comparisons: Sequence[TrackedRun] = (),
    ) -> Links | None:
        """Where a browser shows these runs; None for no runs."""
        if not runs:
            return None
        start = None
        if base is None and self.place.served:
            base = self.place.uri
        elif base is None:
            base = f"http://127.0.0.1:{DEFAULT_PORT}"
            start = self._start_command()
        return make_links(
            base,
            runs[0].experiment_id,
            [run.run_id for run in runs],
            traced=[run.run_id for run in runs if run.traced],
            comparisons=[run.run_id for run in comparisons],
            start=start,
        )

    def _read(
        self, directory: RunDirectory, tasks: Sequence[Task] | None, report: RunReport
    ) -> Content:
        try:
            return read(directory, tasks, self._settings, report)
        except InputError as error:
            raise TrackingError(str(error)) from error
        except (OSError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise TrackingError(f"{directory.path}: cannot be read: {reason}") from error

    def _start_command(self) -> str:
        if self._settings.uri is not None:
            return f"jevexp ui --uri {shlex.quote(self._settings.uri)}"
        if self._outputs.absolute() == Path("outputs").absolute():
            return "jevexp ui"
        return f"jevexp ui --outputs {shlex.quote(str(self._outputs))}"


@contextmanager
def _only_logger_of(directory: RunDirectory) -> Iterator[None]:
    """Keep two processes from making the same run twice; leaves no file behind.

    Raises:
        TrackingError: another process is logging this directory.
    """
    try:
        manifest = open_file(directory.path / MANIFEST, follow_links=False)
    except OSError as error:
        raise TrackingError(f"{directory.path}: cannot be read: {error.strerror}") from error
    with manifest:
        try:
            fcntl.flock(manifest, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise TrackingError(
                f"{directory.path}: {holder(directory.path / MANIFEST)} is logging it"
            ) from error
        yield


def check_place(place: Place, timeout_s: float) -> str:
    """What a person is told about the place when all is well.

    MLflow itself is not asked: it would create or migrate a database.

    Raises:
        TrackingError: a run could not be logged there.
    """
    if place.served:
        ask_health(place.uri, timeout_s)
        return f"{place.uri} answers"
    place.check_own()
    if place.database is None:
        return f"{place.uri} is asked by the first run"
    if place.database.exists():
        _check_database(place.database)
        return str(place.database)
    _check_writable(_existing(place.database.parent))
    return f"{place.database} is made by the first run"


def _check_database(path: Path) -> None:
    _check_writable(path)
    _check_writable(path.parent)
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("SELECT experiment_id FROM experiments LIMIT 1")
    except sqlite3.Error as error:
        raise TrackingError(f"{path}: not MLflow's database: {error}") from error


def _check_writable(path: Path) -> None:
    if not os.access(path, os.W_OK):
        raise TrackingError(f"{path}: cannot be written")


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)
