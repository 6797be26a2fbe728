"""A real MLflow database, made once, with an experiment of its own for every test."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jevexp.tracking.mlflow import MlflowTracker
from jevexp.tracking.mlflow.environment import mlflow_environment
from jevexp.tracking.mlflow.location import make_own
from tests.support.runs import tracking

MakeTracker = Callable[..., MlflowTracker]


@pytest.fixture(scope="session")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mlflow") / "outputs of größe 1"


@pytest.fixture
def make(outputs: Path, request: pytest.FixtureRequest) -> MakeTracker:
    """Makes trackers of this test's own experiment; arguments change the settings."""

    def of(**changed: Any) -> MlflowTracker:
        return MlflowTracker(tracking(**{"experiment": request.node.name} | changed), outputs)

    return of


@pytest.fixture
def tracker(make: MakeTracker) -> MlflowTracker:
    return make()


@pytest.fixture
def client(outputs: Path) -> Any:
    """MLflow's own client on the same database, to read back what was written."""
    if not (database := outputs / "mlflow.db").exists():
        make_own(database)
    with mlflow_environment(10):
        from mlflow import MlflowClient

        return MlflowClient(tracking_uri=f"sqlite:///{outputs}/mlflow.db")
