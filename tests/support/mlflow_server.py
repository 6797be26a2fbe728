"""An MLflow server as a team runs it: a database, and artifacts through the server."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from jevexp.tracking.mlflow.environment import mlflow_environment
from tests.support.ports import free_port

START_TIMEOUT_S = 180


@contextmanager
def mlflow_server(
    folder: Path, *, port: int | None = None, database: str | None = None, workers: int = 1
) -> Iterator[str]:
    """Start a server; its files are in `folder`, and so is its database without another one."""
    port = port or free_port()
    uri = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "mlflow", "server", "--port", str(port)]
    command += ["--workers", str(workers), "--serve-artifacts"]
    command += ["--backend-store-uri", database or f"sqlite:///{folder}/server.db"]
    command += ["--artifacts-destination", (folder / "artifacts").as_uri()]
    environment = os.environ | {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        wait_for(lambda: answers(uri) or process.poll() is not None)
        assert process.poll() is None, (folder / "server.log").read_text()
        yield uri
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answers(uri: str) -> bool:
    """Whether a server is there and well."""
    try:
        with urlopen(f"{uri}/health", timeout=1) as response:
            return bool(response.status == 200)
    except (URLError, OSError):
        return False


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something is so, on a machine with better things to do."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, "too late"
        time.sleep(0.1)


def client_of(uri: str) -> Any:
    """MLflow's own client, to read back what was written; for use in a `mlflow_environment`."""
    with mlflow_environment(10):
        from mlflow import MlflowClient

        return MlflowClient(tracking_uri=uri)
