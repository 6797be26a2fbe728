"""A real MLflow server, and MLflow's user interface as `jevexp ui` starts it."""

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

import pytest

from jevexp.tracking import Change, TrackingError, make_tracker
from jevexp.tracking.conversation import conversation
from jevexp.tracking.tracker import MlflowTracker
from tests.support.cli import jevexp, start
from tests.support.ports import free_port
from tests.support.runs import make_run, noul_tasks, tracking

pytestmark = pytest.mark.live

TASKS = noul_tasks(4)
START_TIMEOUT_S = 120


def answers(uri: str) -> bool:
    try:
        with urlopen(f"{uri}/health", timeout=1) as response:
            return bool(response.status == 200)
    except (URLError, OSError):
        return False


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, "too late"
        time.sleep(0.1)


@contextmanager
def mlflow_server(folder: Path, port: int) -> Iterator[str]:
    """An MLflow server as a team runs it: a database, and artifacts through the server."""
    uri = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--port", str(port)]
    command += ["--backend-store-uri", f"sqlite:///{folder}/server.db"]
    command += ["--artifacts-destination", (folder / "artifacts").as_uri()]
    environment = os.environ | {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for(lambda: answers(uri) or process.poll() is not None)
        yield uri
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def read_back(uri: str, run_id: str) -> Any:
    with conversation(10):
        from mlflow import MlflowClient

        client = MlflowClient(tracking_uri=uri)
        return client.get_run(run_id), {one.path for one in client.list_artifacts(run_id)}


def test_a_run_is_logged_through_a_server_and_again_after_it_was_away(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    first, second = (make_run(tmp_path / name, TASKS) for name in ("first", "second"))

    with mlflow_server(tmp_path, port) as uri:
        settings = tracking(uri=uri)
        tracker = make_tracker(settings, tmp_path)
        run = tracker.log(first, TASKS)
        assert run is not None
        assert run.change is Change.CREATED
        found, artifacts = read_back(uri, run.run_id)
        assert found.info.status == "FINISHED"
        assert found.data.metrics["accuracy"] == 1.0
        assert {"manifest.json", "results.jsonl", "tables", "config.yaml"} <= artifacts
        assert found.info.artifact_uri.startswith("mlflow-artifacts:")
        links = tracker.links([run])
        assert links is not None
        assert links.start is None
        assert links.runs[0].startswith(f"{uri}/#/experiments/")

    # The server is gone in the middle of a session: one line, at once.
    started = time.monotonic()
    with pytest.raises(TrackingError, match=r"cannot be reached: .*refused"):
        tracker.log(second, TASKS)
    assert time.monotonic() - started < 10
    assert capfd.readouterr() == ("", "")

    with mlflow_server(tmp_path, port) as uri:
        later = make_tracker(settings, tmp_path)
        changes = [run.change for one in (first, second) if (run := later.log(one, TASKS))]
        assert changes == [Change.NONE, Change.CREATED]


def test_the_user_interface_starts_shows_its_links_and_ends(workplace: Path) -> None:
    outputs = workplace / "outputs"
    tracker = MlflowTracker(tracking(), outputs)
    for number in range(2):
        started = f"2026-03-01T1{number}:00:00.000Z"
        tracker.log(make_run(outputs / f"run{number}", TASKS, started=started), TASKS)
    port = free_port()
    base = f"http://127.0.0.1:{port}"

    process = start("ui", "--port", str(port), cwd=workplace)
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line.strip())
            if line.startswith("Ctrl-C"):
                break
        assert any(line.startswith(f"compare   {base}/#/compare-runs?") for line in lines), lines
        wait_for(lambda: answers(base))
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert rest.strip() == "ended"
    finally:
        process.kill()
        process.wait()
    wait_for(lambda: not answers(base))


def test_the_links_of_a_server_need_no_start(workplace: Path) -> None:
    with mlflow_server(workplace, free_port()) as uri:
        done = jevexp("ui", "--uri", uri, cwd=workplace)

    assert (done.status, done.out.strip()) == (0, f"no runs yet: {uri}")
