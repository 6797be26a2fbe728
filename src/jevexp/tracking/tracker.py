"""The tracker that writes to MLflow."""

import fcntl
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.settings import Tracking
from jevexp.store import RunDirectory
from jevexp.store.directory import MANIFEST
from jevexp.tracking.additions import NOTHING, Additions, SweepComparison
from jevexp.tracking.check import check_place
from jevexp.tracking.comparison_writing import find_comparison, write_comparison
from jevexp.tracking.content import Content, read
from jevexp.tracking.conversation import conversation
from jevexp.tracking.fetching import fetch
from jevexp.tracking.links import DEFAULT_PORT, Links, make_links
from jevexp.tracking.login import login, secrets
from jevexp.tracking.place import Place
from jevexp.tracking.protocol import TrackedRun, TrackingError
from jevexp.tracking.reading import find_runs, select_runs
from jevexp.tracking.store import ask_health, open_store
from jevexp.tracking.writing import write
from jevexp.untrusted.files import open_file
from jevexp.untrusted.locks import holder
from jevexp.untrusted.owners import permissions_of

MAX_MESSAGE = 240


class MlflowTracker:
    """Logs run directories to one experiment of one MLflow store.

    The store is opened by the first call that needs it. One that could not be opened is not asked
    again, so that many runs do not wait for it one after the other.
    """

    def __init__(self, settings: Tracking, outputs: Path) -> None:
        self.place = Place.of(settings.uri, outputs)
        self._settings = settings
        self._login = login(settings)
        self._outputs = outputs
        self._opened: tuple[Any, str] | None = None
        self._closed: TrackingError | None = None

    def log(
        self,
        directory: RunDirectory,
        tasks: Sequence[Task] | None = None,
        additions: Additions = NOTHING,
    ) -> TrackedRun:
        """Log a finished run from its directory; once, however often it is called.

        Raises:
            TrackingError: it could not be logged; the directory is untouched.
        """
        with _only_logger_of(directory):
            content = self._read(directory, tasks, additions)
            with self._explained():
                client, experiment_id = self._open()
                return write(client, experiment_id, content)

    def log_comparison(self, comparison: SweepComparison) -> TrackedRun:
        """Log the comparison of a sweep as a run of its own; once, however often it is called.

        Raises:
            TrackingError: it could not be logged.
        """
        with _only_logger_of(comparison.runs[0]), self._explained():
            client, experiment_id = self._open()
            return write_comparison(client, experiment_id, comparison)

    def runs(self, sweep: str | None = None) -> list[TrackedRun]:
        """The runs of a sweep, oldest first; without one, the newest runs worth comparing.

        Raises:
            TrackingError: the store cannot be asked.
        """
        with self._explained():
            client, experiment_id = self._open()
            return find_runs(client, experiment_id, sweep)

    def comparisons(self, runs: Sequence[TrackedRun]) -> list[TrackedRun]:
        """The comparison of the sweep that the first of these runs belongs to, if there is one.

        Raises:
            TrackingError: the store cannot be asked.
        """
        if not runs:
            return []
        with self._explained():
            client, experiment_id = self._open()
            return find_comparison(client, experiment_id, runs[0])

    def select(self, where: str) -> list[TrackedRun]:
        """All runs that a filter in MLflow's language selects, oldest first.

        Raises:
            TrackingError: the store cannot be asked, or does not understand the filter.
        """
        with self._explained():
            client, experiment_id = self._open(create=False)
            return select_runs(client, experiment_id, where)

    def fetch(self, run_id: str, into: Path) -> RunDirectory:
        """The directory that a run was logged from, if it is here and unchanged; else a copy.

        Raises:
            TrackingError: there is no such run, or its files are not those that were logged.
        """
        with self._explained():
            client, _ = self._open(create=False)
            return fetch(client, run_id, into)

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
        self, directory: RunDirectory, tasks: Sequence[Task] | None, additions: Additions
    ) -> Content:
        try:
            return read(directory, tasks, self._settings, additions)
        except InputError as error:
            raise TrackingError(str(error)) from error
        except (OSError, ValueError) as error:
            raise TrackingError(
                f"{directory.path}: cannot be read: {_first_line(error)}"
            ) from error

    def _open(self, *, create: bool = True) -> tuple[Any, str]:
        if self._closed is not None:
            raise self._closed
        if self._opened is None:
            try:
                self._opened = open_store(
                    self.place,
                    self._settings.experiment,
                    self._settings.timeout_s,
                    create=create,
                )
            except TrackingError as error:
                self._closed = error
                raise
        return self._opened

    def _start_command(self) -> str:
        if self._settings.uri is not None:
            return f"jevexp ui --uri {shlex.quote(self._settings.uri)}"
        if self._outputs.absolute() == Path("outputs").absolute():
            return "jevexp ui"
        return f"jevexp ui --outputs {shlex.quote(str(self._outputs))}"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Talk to MLflow; whatever goes wrong comes out as one line."""
        try:
            with (
                permissions_of(self._outputs),
                conversation(self._settings.timeout_s, self._login),
            ):
                yield
        except TrackingError:
            raise
        except Exception as error:
            # MLflow, its database layer and its HTTP client share no base class.
            if self.place.served:
                # What MLflow says of a server that is gone hides the reason in three others.
                ask_health(self.place.uri, self._settings.timeout_s)
            said = _first_line(error, hidden=secrets(self._login))
            raise TrackingError(f"{self.place.uri}: {said}") from error


def _first_line(error: Exception, hidden: Sequence[str] = ()) -> str:
    """What an error says, in short; a server may repeat what it was asked with."""
    text = f"{type(error).__name__}: {error}"
    for secret in hidden:
        text = text.replace(secret, "***")
    text = text.splitlines()[0].strip()
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"


@contextmanager
def _only_logger_of(directory: RunDirectory) -> Iterator[None]:
    """Keep two processes from making the same run twice; leaves no file behind.

    Raises:
        TrackingError: another process is logging this directory.
    """
    try:
        file = open_file(directory.path / MANIFEST, follow_links=False)
    except OSError as error:
        raise TrackingError(f"{directory.path}: cannot be read: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise TrackingError(
            f"{directory.path}: {holder(directory.path / MANIFEST)} is logging it"
        ) from error
    finally:
        file.close()
