"""Whether a run could be logged: an answer that leaves nothing behind."""

import socket
from pathlib import Path

import pytest

from jevexp.tracking import TrackingError, make_trackers
from jevexp.tracking.mlflow import MlflowTracker
from tests.support.runs import make_run, noul_tasks, tracking
from tests.tracking.conftest import MakeTracker


def test_a_database_that_is_not_there_yet_is_made_later(tmp_path: Path) -> None:
    outputs = tmp_path / "a" / "outputs"

    said = MlflowTracker(tracking(), outputs).check()

    assert said == f"{outputs}/mlflow.db is made by the first run"
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_is_there_is_named(make: MakeTracker, tmp_path: Path) -> None:
    tracker = make()
    tracker.log(make_run(tmp_path / "run", noul_tasks(1)))
    database = tracker.location.database
    assert database is not None
    before = sorted(database.parent.iterdir())

    assert make().check() == str(database)
    assert sorted(database.parent.iterdir()) == before


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("something else\n" * 100)

    with pytest.raises(TrackingError, match="not MLflow's database: file is not a database"):
        MlflowTracker(tracking(uri=f"sqlite:///{tmp_path}/mlflow.db"), tmp_path).check()


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").touch()

    with pytest.raises(TrackingError, match="no such table: experiments"):
        MlflowTracker(tracking(uri=f"sqlite:///{tmp_path}/mlflow.db"), tmp_path).check()


def test_a_server_that_is_down_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TrackingError, match=r"no answer within 0\.5 s"):
            MlflowTracker(tracking(uri=uri, timeout_s=0.5), tmp_path).check()


def test_without_tracking_there_is_nothing_to_check(tmp_path: Path) -> None:
    assert make_trackers(tracking(kind="none"), tmp_path) == {}
