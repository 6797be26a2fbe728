"""Opens the store: asks a server whether it is there, creates a database exactly once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jevexp.tracking.place import Place
from jevexp.tracking.protocol import TrackingError
from jevexp.untrusted.databases import prepare_database
from jevexp.untrusted.files import RefusedPath
from jevexp.untrusted.locks import LockHeld, locked

# Creating the database takes 5 s on an idle machine; others may be queueing for it.
LOCK_TIMEOUT_S = 120
# The page itself is not read.
_MOST_HEALTH_BYTES = 64 << 10


def open_store(place: Place, experiment: str, timeout_s: float, *, create: bool) -> tuple[Any, str]:
    """An MLflow client for the place, and the id of the experiment.

    Call it inside a `conversation`. `create` makes the database and the experiment if missing.

    Raises:
        TrackingError: a server does not answer in time, a lock is held for too long, or something
            is missing that is not to be made.
    """
    if place.served:
        ask_health(place.uri, timeout_s)
    if not create and place.database is not None and not place.database.is_file():
        raise TrackingError(f"{place.database}: no such database; nothing was logged there yet")
    # Imported before the lock is taken: others need not wait for that too.
    from mlflow import MlflowClient

    with _alone(place):
        client = MlflowClient(tracking_uri=place.uri)
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


@contextmanager
def _alone(place: Place) -> Iterator[None]:
    """Of two processes that create one database at once, both fail."""
    if place.lock is None:
        yield
        return
    try:
        with locked(place.lock, LOCK_TIMEOUT_S):
            if place.database is not None:
                prepare_database(place.database)
            yield
    except (LockHeld, RefusedPath) as error:
        raise TrackingError(f"{error.filename}: {error.strerror}") from error


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
