"""Whether a run could be logged, found out without leaving anything behind."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from jevexp.tracking.place import Place
from jevexp.tracking.protocol import TrackingError
from jevexp.tracking.store import ask_health


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
