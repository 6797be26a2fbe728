"""Servers that are down, silent or something else: one line, soon."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from jevexp.store import RunDirectory
from jevexp.tracking import TrackingError
from jevexp.tracking.mlflow import MlflowTracker
from tests.support.ports import free_port
from tests.support.runs import make_run, noul_tasks, tracking

TASKS = noul_tasks(2)
TIMEOUT_S = 1.0
# Importing MLflow, on a machine with better things to do.
PATIENCE_S = 15.0


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return make_run(tmp_path / "run", TASKS)


def refusal(uri: str, run: RunDirectory) -> str:
    """What the tracker says, which it has to do in time."""
    tracker = MlflowTracker(tracking(uri=uri, timeout_s=TIMEOUT_S), run.path.parent)
    started = time.monotonic()
    with pytest.raises(TrackingError) as error:
        tracker.log(run)
    assert time.monotonic() - started < TIMEOUT_S + PATIENCE_S
    assert "\n" not in str(error.value)
    return str(error.value)


@contextmanager
def server(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}"
        finally:
            running.shutdown()
            thread.join()


class Answer(BaseHTTPRequestHandler):
    """Answers everything alike; what differs between servers is set below."""

    status = 200

    def do_GET(self) -> None:
        if self.path != "/health":
            self.late()
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(b"<html>OK</html>")

    def late(self) -> None:
        """Be slow, or not."""

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_nobody_listens(run: RunDirectory) -> None:
    assert "Connection refused" in refusal(f"http://127.0.0.1:{free_port()}", run)


def test_somebody_accepts_and_never_answers(run: RunDirectory) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        uri = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert refusal(uri, run) == f"{uri}: no answer within 1 s"


def test_a_server_hangs_after_it_said_that_it_is_well(run: RunDirectory) -> None:
    released = threading.Event()

    class Hanging(Answer):
        def late(self) -> None:
            released.wait(60)

    with server(Hanging) as uri:
        try:
            assert "MlflowException" in refusal(uri, run)
        finally:
            released.set()


def test_a_server_is_broken(run: RunDirectory) -> None:
    class Broken(Answer):
        status = 503

    with server(Broken) as uri:
        assert refusal(uri, run) == f"{uri}: answers with status 503"


def test_a_server_is_not_mlflow(run: RunDirectory) -> None:
    with server(Answer) as uri:
        assert refusal(uri, run).startswith(f"{uri}: MlflowException")


def test_a_database_is_none(run: RunDirectory, tmp_path: Path) -> None:
    (tmp_path / "not.db").write_text("something else\n" * 100)

    assert "file is not a database" in refusal(f"sqlite:///{tmp_path}/not.db", run)


def test_a_dead_server_is_waited_for_only_once(run: RunDirectory) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        uri = f"http://127.0.0.1:{listener.getsockname()[1]}"
        tracker = MlflowTracker(tracking(uri=uri, timeout_s=TIMEOUT_S), run.path.parent)
        with pytest.raises(TrackingError):
            tracker.log(run)
        started = time.monotonic()
        for _ in range(20):
            with pytest.raises(TrackingError, match="no answer"):
                tracker.log(run)
    assert time.monotonic() - started < TIMEOUT_S
