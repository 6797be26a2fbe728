"""Opens the store: asks a server whether it is there, creates a database exactly once."""

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from jevexp.settings import Tracking
from jevexp.store import RunDirectory
from jevexp.tracking.comparison_writing import find_comparison, write_comparison
from jevexp.tracking.content import Content
from jevexp.tracking.conversation import conversation, secrets
from jevexp.tracking.place import ARTIFACTS, Place, make_own
from jevexp.tracking.protocol import SweepComparison, TrackedRun, TrackingError
from jevexp.tracking.reading import fetch, find_runs, select_runs
from jevexp.tracking.writing import write
from jevexp.untrusted.addresses import redacted
from jevexp.untrusted.console import printable
from jevexp.untrusted.databases import prepare_database
from jevexp.untrusted.locks import locked
from jevexp.untrusted.owners import permissions_of
from jevexp.untrusted.secrets import Secrets

# Creating the database takes 5 s on an idle machine; others may be queueing for it.
LOCK_TIMEOUT_S = 120
# The page itself is not read.
_MOST_HEALTH_BYTES = 64 << 10
_MOST_SHOWN = 200
MAX_MESSAGE = 240
# Of an error; a server may send any amount.
_MOST_REPORTED = 10_000


class MlflowStore:
    """One experiment of one store, asked in this process.

    It is opened by the first call that needs it. One that could not be opened is not asked again,
    so that many runs do not wait for it one after the other.

    Raises:
        TrackingError: from every method: the store cannot be asked, or refuses. One line.
    """

    def __init__(self, settings: Tracking, place: Place, login: Mapping[str, str]) -> None:
        self._settings = settings
        self._place = place
        self._secrets = Secrets(secrets(login))
        self._opened: tuple[Any, str] | None = None
        self._closed: TrackingError | None = None
        self._checked = False

    def write(self, content: Content) -> TrackedRun:
        """Log a run; once, however often it is called."""
        with self._explained():
            return write(*self._open_for_files(), content)

    def write_comparison(self, comparison: SweepComparison) -> TrackedRun:
        """Log the comparison of a sweep; once, however often it is called."""
        with self._explained():
            return write_comparison(*self._open_for_files(), comparison)

    def find_runs(self, sweep: str | None) -> list[TrackedRun]:
        """The runs of a sweep, or the newest ones."""
        with self._explained():
            return find_runs(*self._open(), sweep)

    def find_comparison(self, run: TrackedRun) -> list[TrackedRun]:
        """The comparison of the sweep that a run belongs to."""
        with self._explained():
            return find_comparison(*self._open(), run)

    def select(self, where: str) -> list[TrackedRun]:
        """The runs that a filter selects."""
        with self._explained():
            return select_runs(*self._open(create=False), where)

    def fetch(self, run_id: str, into: Path) -> RunDirectory:
        """A run's directory, or a copy of what is needed of it."""
        with self._explained():
            client, _ = self._open(create=False)
            return fetch(client, run_id, into)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Nothing: a database in the middle of a change is left to finish it."""
        yield

    def _open(self, *, create: bool = True) -> tuple[Any, str]:
        if self._closed is not None:
            raise self._closed
        if self._opened is None:
            try:
                self._opened = open_store(
                    self._place, self._settings.experiment, self._settings.timeout_s, create=create
                )
            except TrackingError as error:
                self._closed = error
                raise
        return self._opened

    def _open_for_files(self) -> tuple[Any, str]:
        """As `_open`; nothing is made of a run whose files would be refused."""
        client, experiment_id = self._open()
        if not self._checked:
            found = client.get_experiment(experiment_id)
            what = f"experiment {self._settings.experiment!r}"
            _check_location(self._place, found.artifact_location, what)
            self._checked = True
        return client, experiment_id

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Talk to MLflow; whatever goes wrong comes out as one line."""
        try:
            with self._permissions(), conversation(self._settings.timeout_s):
                yield
        except TrackingError:
            raise
        except Exception as error:
            if _is_for_want_of_memory(error):
                reason = f"{self._place.uri}: sends more than there is memory for"
                raise TrackingError(reason) from error
            # MLflow, its database layer and its HTTP client share no base class.
            if self._place.served:
                # What MLflow says of a server that is gone hides the reason in three others.
                ask_health(self._place.uri, self._settings.timeout_s)
            raise TrackingError(f"{self._place.uri}: {self._in_short(error)}") from error

    def _permissions(self) -> AbstractContextManager[None]:
        lock = self._place.lock
        return nullcontext() if lock is None else permissions_of(lock.parent)

    def _in_short(self, error: Exception) -> str:
        """What an error says; a server may repeat what it was asked with."""
        text = str(self._secrets.without(f"{type(error).__name__}: {error}"[:_MOST_REPORTED]))
        line = redacted(text.strip().splitlines()[0].strip())
        return line if len(line) <= MAX_MESSAGE else f"{line[:MAX_MESSAGE]}…"


def _is_for_want_of_memory(error: BaseException | None) -> bool:
    """Whether that is behind an error; MLflow raises one of its own about it."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def open_store(place: Place, experiment: str, timeout_s: float, *, create: bool) -> tuple[Any, str]:
    """An MLflow client for the place, and the id of the experiment.

    Call it inside a `conversation`. `create` makes the database and the experiment if missing.

    Raises:
        TrackingError: a server does not answer in time, a lock is held for too long, something is
            missing that is not to be made, or the database may be somebody else's.
    """
    if place.served:
        ask_health(place.uri, timeout_s)
    place.check_own()
    if not create and place.database is not None and not place.database.is_file():
        raise TrackingError(f"{place.database}: no such database; nothing was logged there yet")
    # Imported before the lock is taken: others need not wait for that too.
    import mlflow  # noqa: F401

    with _alone(place):
        if place.database is not None:
            if not os.path.lexists(place.database):
                make_own(place.database)
            prepare_database(place.database)
        client = _client(place)
        return client, _experiment_id(client, place, experiment, create=create)


def ask_health(uri: str, timeout_s: float) -> None:
    """Ask a server whether it is there.

    Any answer will do that is no server error: behind a login even this page may be refused.

    Raises:
        TrackingError: it does not answer within the time, or says that it cannot work.
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


def _client(place: Place) -> Any:
    """MLflow's client, which takes and gives files only where the address says."""
    from mlflow import MlflowClient
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    # A run's files are sent one after the other.
    last: dict[str, Any] = {}

    class Client(MlflowClient):  # type: ignore[misc]  # it has no types
        """MLflow would go wherever a run's entry says, with the login of the environment."""

        def log_artifact(
            self, run_id: str, local_path: str, artifact_path: str | None = None
        ) -> None:
            self._files(run_id).log_artifact(local_path, artifact_path)

        def log_artifacts(
            self, run_id: str, local_dir: str, artifact_path: str | None = None
        ) -> None:
            self._files(run_id).log_artifacts(local_dir, artifact_path)

        def list_artifacts(self, run_id: str, path: str | None = None) -> Any:
            return self._files(run_id).list_artifacts(path)

        def download_artifacts(self, run_id: str, path: str, dst_path: str | None = None) -> Any:
            return self._files(run_id).download_artifacts(path, dst_path)

        def _files(self, run_id: str) -> Any:
            if last.get("run") != run_id:
                location = self.get_run(run_id).info.artifact_uri
                _check_location(place, location, f"run {run_id}")
                # Made from what was checked: asked again, a server could say something else.
                files = get_artifact_repository(location, tracking_uri=place.uri)
                last.update(run=run_id, files=files)
            return last["files"]

    return Client(tracking_uri=place.uri)


def _check_location(place: Place, location: str, what: str) -> None:
    """Refuse an experiment or a run whose files would go elsewhere.

    Raises:
        TrackingError: naming the place, and the way out.
    """
    if place.holds(location):
        if place.artifacts is not None:
            _refuse_links(place, Path(url2pathname(urlsplit(location).path)))
        return
    if place.artifacts is not None:
        beside = redacted(place.artifacts)
        way_out = (
            f"below {beside}; log to another experiment (--experiment, tracking.experiment), or "
            "name the folder of runs that the files are in (--outputs, outputs)"
        )
    elif place.served:
        way_out = (
            "with the server; start it with --serve-artifacts, and log to a new experiment "
            "(--experiment, tracking.experiment)"
        )
    else:
        way_out = "in the workspace; log to another experiment (--experiment, tracking.experiment)"
    shown = redacted(printable(location[:_MOST_SHOWN]))
    raise TrackingError(f"{what} keeps its files at {shown}, and not {way_out}")


def _refuse_links(place: Place, folder: Path) -> None:
    """MLflow writes through links, and whoever made a folder of runs may have put some into it."""
    root = [] if place.named or place.database is None else [place.database.with_name(ARTIFACTS)]
    for path in (*root, *folder.rglob("*")):
        if path.is_symlink():
            raise TrackingError(f"{path}: is a link, and nothing is written through one; remove it")


@contextmanager
def _alone(place: Place) -> Iterator[None]:
    """Of two processes that create one database at once, both fail."""
    if place.lock is None:
        yield
        return
    try:
        with locked(place.lock, LOCK_TIMEOUT_S):
            yield
    except OSError as error:
        raise TrackingError(f"{error.filename or place.lock}: {error.strerror}") from error


def _experiment_id(client: Any, place: Place, name: str, *, create: bool) -> str:
    from mlflow import MlflowException

    if found := client.get_experiment_by_name(name):
        if found.lifecycle_stage != "active":
            raise TrackingError(
                f"experiment {name!r} is deleted there; restore it, or set tracking.experiment"
            )
        return str(found.experiment_id)
    if not create:
        raise TrackingError(f"{place.uri}: there is no experiment {name!r}")
    try:
        return str(client.create_experiment(name, artifact_location=place.artifacts))
    except MlflowException:
        # Somebody else made it between the question and the answer.
        if found := client.get_experiment_by_name(name):
            return str(found.experiment_id)
        raise
