"""A team's server: MLflow on PostgreSQL, artifacts through the server, many workers at once.

`python -m bench.tracking_server` is the same with 64 runs.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jevexp.tracking.mlflow import MlflowTracker
from jevexp.tracking.mlflow.environment import mlflow_environment
from tests.support.mlflow_server import client_of, mlflow_server
from tests.support.postgres import Postgres, postgres
from tests.support.runs import make_run, tracking
from tests.support.workers import TASKS, log_from_workers

pytestmark = pytest.mark.live

WORKERS = 8
FILES = 7


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


def test_eight_workers_log_through_one_server(database: Postgres, tmp_path: Path) -> None:
    runs = [make_run(tmp_path / f"run{number}", TASKS).path for number in range(WORKERS)]

    with mlflow_server(tmp_path, database=database.url) as uri:
        said = log_from_workers(runs, tracking(uri=uri, timeout_s=60.0), WORKERS)
        with mlflow_environment(60):
            client = client_of(uri)
            experiment = client.get_experiment_by_name("jevexp").experiment_id
            found = client.search_runs([experiment])
            artifacts = {run.info.run_id: client.list_artifacts(run.info.run_id) for run in found}

    assert said == ["logged"] * WORKERS
    assert {run.data.tags["jev.run"] for run in found} == {run.name for run in runs}
    assert {run.info.status for run in found} == {"FINISHED"}
    assert {len(files) for files in artifacts.values()} == {FILES}
    assert {run.data.metrics["accuracy"] for run in found} == {1.0}

    # The same database without a server before it: what is there is found, and not made again.
    direct = MlflowTracker(tracking(uri=database.url), tmp_path)
    assert {run.directory for run in direct.runs()} == {run.name for run in runs}
