"""Several processes on one store: none fails, nothing is logged twice or lost."""

import multiprocessing
import sqlite3
from contextlib import closing
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest

from jevexp.store import RunDirectory
from jevexp.tracking import TrackingError
from jevexp.tracking.mlflow import MlflowTracker
from jevexp.tracking.mlflow.environment import mlflow_environment
from jevexp.tracking.mlflow.location import adopt
from tests.support.runs import make_run, noul_tasks, tracking

TASKS = noul_tasks(4)


@pytest.fixture
def processes() -> ForkServerContext:
    # MLflow is imported once for all of them, in a process that has opened nothing yet.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mlflow", "mlflow.store.tracking.sqlalchemy_store"])
    return context


@pytest.fixture
def store(outputs: Path, client: Any, tmp_path: Path) -> Path:
    """An outputs folder with a database of its own, copied, as making one takes seconds."""
    assert client.get_experiment_by_name("jevexp") is None
    folder = tmp_path / "outputs"
    folder.mkdir()
    with closing(sqlite3.connect(outputs / "mlflow.db")) as made:
        made.execute("VACUUM INTO ?", (str(folder / "mlflow.db"),))
    # A copy is a stranger's until somebody says that it is theirs.
    adopt(folder / "mlflow.db")
    return folder


def log(run: Path, outputs: Path, start: Any) -> str:
    tracker = MlflowTracker(tracking(), outputs)
    start.wait()
    try:
        return tracker.log(RunDirectory(run)).change.value
    except TrackingError as error:
        return str(error)


def log_at_once(processes: ForkServerContext, runs: list[Path], outputs: Path) -> list[str]:
    with processes.Manager() as manager, processes.Pool(len(runs)) as pool:
        start = manager.Barrier(len(runs))
        return pool.starmap(log, [(run, outputs, start) for run in runs])


def logged(outputs: Path) -> list[Any]:
    with mlflow_environment(10):
        from mlflow import MlflowClient

        client = MlflowClient(tracking_uri=f"sqlite:///{outputs}/mlflow.db")
        experiment = client.get_experiment_by_name("jevexp")
        return list(client.search_runs([experiment.experiment_id]))


def test_processes_that_create_the_store_at_once_all_log(
    processes: ForkServerContext, tmp_path: Path
) -> None:
    runs = [make_run(tmp_path / f"run{n}", TASKS).path for n in range(2)]

    said = log_at_once(processes, runs, tmp_path / "outputs")

    assert said == ["logged", "logged"]
    assert len(logged(tmp_path / "outputs")) == 2


def test_eight_processes_log_at_once(
    processes: ForkServerContext, tmp_path: Path, store: Path
) -> None:
    runs = [make_run(tmp_path / f"run{n}", TASKS).path for n in range(8)]

    said = log_at_once(processes, runs, store)

    assert said == ["logged"] * 8
    found = logged(store)
    assert {run.data.tags["jev.run"] for run in found} == {run.name for run in runs}
    assert {run.info.status for run in found} == {"FINISHED"}


def test_two_processes_do_not_log_one_directory_twice(
    processes: ForkServerContext, tmp_path: Path, store: Path
) -> None:
    run = make_run(tmp_path / "run", TASKS).path

    said = log_at_once(processes, [run, run], store)

    assert "logged" in said
    for line in set(said) - {"logged", "unchanged"}:
        # Who that is may be over by the time it is looked up.
        assert line.startswith((f"{run}: process ", f"{run}: another process "))
        assert line.endswith(" is logging it")
    assert len(logged(store)) == 1
