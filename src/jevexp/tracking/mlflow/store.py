"""Opens the store: asks a server whether it is there, creates a database exactly once."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from jevexp.settings import MlflowTracking
from jevexp.store import RunDirectory
from jevexp.tracking import SweepComparison, TrackedRun, TrackingError
from jevexp.tracking.mlflow.content import Content
from jevexp.tracking.mlflow.environment import mlflow_environment, secrets
from jevexp.tracking.mlflow.location import (
    ARTIFACTS,
    StoreLocation,
    ask_health,
    local_path,
    make_own,
)
from jevexp.tracking.mlflow.reading import fetch, find_runs, select_runs
from jevexp.tracking.mlflow.writing import find_comparison, write, write_comparison
from jevexp.untrusted.addresses import redacted
from jevexp.untrusted.console import printable
from jevexp.untrusted.files import permissions_of
from jevexp.untrusted.locks import locked
from jevexp.untrusted.secrets import Secrets
from jevexp.untrusted.writing import prepare_database

# Creating the database takes 5 s on an idle machine; others may be queueing for it.
LOCK_TIMEOUT_S = 120
_MOST_SHOWN = 200
MAX_MESSAGE = 240
# Of an error; a server may send any amount.
_MOST_REPORTED = 10_000


class MlflowStore:
    """One experiment of one store, asked in this process.

    It is opened by the first call that needs it. One that could not be opened is not asked again,
    so that many runs do not wait for it one after the other.

    Raises TrackingError: from every method: the store cannot be asked, or refuses. One line.
    """

    def __init__(
        self, settings: MlflowTracking, location: StoreLocation, login: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._location = location
        self._secrets = Secrets(secrets(login))
        self._opened: tuple[Any, str] | None = None
        self._closed: TrackingError | None = None
        self._checked = False

    def write(self, content: Content) -> TrackedRun:
        """Log a run; once, however often it is called."""
        with self._session(files=True) as session:
            return write(*session, content)

    def write_comparison(self, comparison: SweepComparison) -> TrackedRun:
        """Log the comparison of a sweep; once, however often it is called."""
        with self._session(files=True) as session:
            return write_comparison(*session, comparison)

    def find_runs(self, sweep: str | None) -> list[TrackedRun]:
        """The runs of a sweep, or the newest ones."""
        with self._session() as session:
            return find_runs(*session, sweep)

    def find_comparison(self, run_id: str) -> list[TrackedRun]:
        """The comparison of the sweep that a run belongs to."""
        with self._session() as session:
            return find_comparison(*session, run_id)

    def select(self, where: str) -> list[TrackedRun]:
        """All runs that a filter in MLflow's language selects, oldest first."""
        with self._session(create=False) as session:
            return select_runs(*session, where)

    def fetch(self, run_id: str, into: Path) -> RunDirectory:
        """The directory that a run was logged from, if it is here and unchanged; else a copy."""
        with self._session(create=False) as (client, _):
            return fetch(client, run_id, into)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Nothing: a database in the middle of a change is left to finish it."""
        yield

    @contextmanager
    def _session(self, *, create: bool = True, files: bool = False) -> Iterator[tuple[Any, str]]:
        """MLflow's client and the experiment's id; whatever goes wrong comes out as one line."""
        # With `files`, nothing is made of a run whose files would be refused.
        uri, lock, timeout_s = self._location.uri, self._location.lock, self._settings.timeout_s
        try:
            with (
                permissions_of(lock.parent) if lock else nullcontext(),
                mlflow_environment(timeout_s),
            ):
                client, experiment_id = self._opened = self._open(create=create)
                if files and not self._checked:
                    stored_at = client.get_experiment(experiment_id).artifact_location
                    owner = f"experiment {self._settings.experiment!r}"
                    _check_files(self._location, stored_at, owner)
                    self._checked = True
                yield client, experiment_id
        except TrackingError:
            raise
        except Exception as error:
            # MLflow, its database layer and its HTTP client share no base class.
            if _is_for_want_of_memory(error):
                raise TrackingError(f"{uri}: sends more than there is memory for") from error
            if self._location.served:
                # What MLflow says of a server that is gone hides the reason in three others.
                ask_health(uri, timeout_s)
            # A server may repeat what it was asked with.
            text = self._secrets.without(f"{type(error).__name__}: {error}"[:_MOST_REPORTED])
            line = redacted(str(text).strip().splitlines()[0].strip())
            shown = line if len(line) <= MAX_MESSAGE else f"{line[:MAX_MESSAGE]}…"
            raise TrackingError(f"{uri}: {shown}") from error

    def _open(self, *, create: bool) -> tuple[Any, str]:
        if self._closed is not None:
            raise self._closed
        try:
            return self._opened or _open_store(self._location, self._settings, create=create)
        except TrackingError as error:
            self._closed = error
            raise


def _is_for_want_of_memory(error: BaseException | None) -> bool:
    """Whether that is behind an error; MLflow raises one of its own about it."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error is not None


def _open_store(
    location: StoreLocation, settings: MlflowTracking, *, create: bool
) -> tuple[Any, str]:
    """A client and the experiment's id; `create` makes what is missing. Raises TrackingError."""
    database = location.database
    if location.served:
        ask_health(location.uri, settings.timeout_s)
    location.check_own()
    if not create and database is not None and not database.is_file():
        raise TrackingError(f"{database}: no such database; nothing was logged there yet")
    # Imported before the lock is taken: others need not wait for that too.
    import mlflow  # noqa: F401

    try:
        # Of two processes that create one database at once, both fail.
        with locked(location.lock, LOCK_TIMEOUT_S) if location.lock else nullcontext():
            if database is not None:
                if not os.path.lexists(database):
                    make_own(database)
                prepare_database(database)
            client = _client(location)
            return client, _experiment_id(client, location, settings.experiment, create=create)
    except OSError as error:
        if location.lock is None:
            raise
        raise TrackingError(f"{error.filename or location.lock}: {error.strerror}") from error


def _client(location: StoreLocation) -> Any:
    """MLflow's client, which takes and gives files only where the address says."""
    from mlflow import MlflowClient
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    # A run's files are sent one after the other.
    last: dict[str, Any] = {}

    class Client(MlflowClient):  # type: ignore[misc]  # it has no types
        """MLflow would go wherever a run's entry says, with the login of the environment."""

        def log_artifact(self, run_id: str, *arguments: Any) -> None:
            self._files(run_id).log_artifact(*arguments)

        def log_artifacts(self, run_id: str, *arguments: Any) -> None:
            self._files(run_id).log_artifacts(*arguments)

        def list_artifacts(self, run_id: str, *arguments: Any) -> Any:
            return self._files(run_id).list_artifacts(*arguments)

        def download_artifacts(self, run_id: str, *arguments: Any) -> Any:
            return self._files(run_id).download_artifacts(*arguments)

        def _files(self, run_id: str) -> Any:
            if last.get("run") != run_id:
                uri = self.get_run(run_id).info.artifact_uri
                _check_files(location, uri, f"run {run_id}")
                # Made from what was checked: asked again, a server could say something else.
                files = get_artifact_repository(uri, tracking_uri=location.uri)
                last.update(run=run_id, files=files)
            return last["files"]

    return Client(tracking_uri=location.uri)


def _check_files(location: StoreLocation, uri: str, owner: str) -> None:
    """Refuse an experiment or a run whose files would go elsewhere; raises TrackingError."""
    if location.holds(uri):
        if location.artifacts is not None:
            # MLflow writes through links, and whoever made a folder of runs may have put some in.
            database = None if location.named else location.database
            root = [database.with_name(ARTIFACTS)] if database else []
            for path in (*root, *local_path(uri).rglob("*")):
                if path.is_symlink():
                    raise TrackingError(
                        f"{path}: is a link, and nothing is written through one; remove it"
                    )
        return
    options = "(--experiment, tracking.experiment)"
    if location.artifacts is not None:
        way_out = (
            f"below {redacted(location.artifacts)}; log to another experiment {options}, or name "
            "the folder of runs that the files are in (--outputs, outputs)"
        )
    elif location.served:
        server = "with the server; start it with --serve-artifacts, and"
        way_out = f"{server} log to a new experiment {options}"
    else:
        way_out = f"in the workspace; log to another experiment {options}"
    shown = redacted(printable(uri[:_MOST_SHOWN]))
    raise TrackingError(f"{owner} keeps its files at {shown}, and not {way_out}")


def _experiment_id(client: Any, location: StoreLocation, name: str, *, create: bool) -> str:
    from mlflow import MlflowException

    if experiment := client.get_experiment_by_name(name):
        if experiment.lifecycle_stage != "active":
            raise TrackingError(
                f"experiment {name!r} is deleted there; restore it, or set tracking.experiment"
            )
        return str(experiment.experiment_id)
    if not create:
        raise TrackingError(f"{location.uri}: there is no experiment {name!r}")
    try:
        return str(client.create_experiment(name, artifact_location=location.artifacts))
    except MlflowException:
        # Somebody else made it between the question and the answer.
        if experiment := client.get_experiment_by_name(name):
            return str(experiment.experiment_id)
        raise
