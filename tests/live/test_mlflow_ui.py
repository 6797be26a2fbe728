"""MLflow's user interface as `jevexp ui` starts it."""

import signal
from pathlib import Path

import pytest

from jevexp.tracking.mlflow import MlflowTracker
from tests.support.cli import start
from tests.support.mlflow_server import answers, wait_for
from tests.support.ports import free_port
from tests.support.runs import make_run, noul_tasks, tracking

pytestmark = pytest.mark.live

TASKS = noul_tasks(4)


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
