"""Servers that drip, flood or redirect: a bounded wait, bounded memory, and an end by signal."""

import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pytest

from jevexp.store import RunDirectory
from jevexp.tracking import NO_REPORT, TrackingError
from jevexp.tracking.mlflow import MlflowTracker, child
from jevexp.tracking.mlflow.content import read
from jevexp.tracking.mlflow.location import StoreLocation
from tests.support.cli import start
from tests.support.runs import make_run, noul_tasks, tracking

TASKS = noul_tasks(2)
HEALTHY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nOK"
Behaviour = Callable[[socket.socket], None]


@contextmanager
def server(behaviour: Behaviour) -> Iterator[str]:
    """Well as long as its health is asked for; what comes then is the behaviour's."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer(connection: socket.socket) -> None:
            with connection:
                try:
                    asked = connection.recv(65536)
                    if asked.startswith(b"GET /health"):
                        connection.sendall(HEALTHY)
                    else:
                        behaviour(connection)
                except OSError:
                    return

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def drip_headers(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while True:
        connection.sendall(b"a")
        time.sleep(0.05)


def drip_a_body(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while True:
        connection.sendall(b" ")
        time.sleep(0.05)


def flood(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n{")
    while True:
        connection.sendall(b" " * (1 << 20))


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return make_run(tmp_path / "run", TASKS)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[child._Process]:
    """The processes that were started."""
    started: list[child._Process] = []
    make = child._Process.__init__

    def remember(self: child._Process, *args: object) -> None:
        make(self, *args)  # type: ignore[arg-type]
        started.append(self)

    monkeypatch.setattr(child._Process, "__init__", remember)
    return started


@pytest.mark.parametrize("behaviour", [drip_headers, drip_a_body])
def test_a_server_that_drips_is_left_at_the_deadline(
    behaviour: Behaviour, run: RunDirectory, processes: list[child._Process], tmp_path: Path
) -> None:
    with server(behaviour) as uri:
        tracker = MlflowTracker(tracking(uri=uri, timeout_s=0.5), tmp_path)
        with pytest.raises(TrackingError) as refused:
            tracker.log(run)
        # Nobody waits for it again.
        with pytest.raises(TrackingError, match="not done within"):
            tracker.log(run)

    assert str(refused.value).startswith(f"{uri}: not done within 3")
    assert len(processes) == 1
    assert processes[0]._process.returncode == -signal.SIGKILL
    assert not Path(processes[0].folder).exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds what a process takes")
def test_a_server_that_floods_does_not_get_the_memory(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # So much that only the bound on memory ends it.
    monkeypatch.setattr(child, "REQUESTS_WORTH", 1000)
    with server(flood) as uri:
        tracker = MlflowTracker(tracking(uri=uri, timeout_s=10.0), tmp_path)
        with pytest.raises(TrackingError, match=f"^{uri}: sends more than there is memory for$"):
            tracker.log(run)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_only_sets_a_flag_elsewhere_ends_the_call(
    signum: signal.Signals, run: RunDirectory, processes: list[child._Process], tmp_path: Path
) -> None:
    flagged: list[int] = []
    asked = threading.Event()

    def hang(connection: socket.socket) -> None:
        asked.set()
        connection.recv(1)

    def note(received: int, _frame: FrameType | None) -> None:
        flagged.append(received)

    def send() -> None:
        asked.wait()
        os.kill(os.getpid(), signum)

    before = signal.signal(signum, note)
    try:
        with server(hang) as uri:
            threading.Thread(target=send, daemon=True).start()
            tracker = MlflowTracker(tracking(uri=uri, timeout_s=1000.0), tmp_path)
            with pytest.raises(TrackingError, match=f"put off, since {signum.name} arrived"):
                tracker.log(run)
        assert signal.getsignal(signum) is note
    finally:
        signal.signal(signum, before)
    assert flagged == [signum]
    assert processes[0]._process.returncode == -signal.SIGKILL


def test_a_run_that_is_ended_while_it_is_tracked_is_complete_and_says_how_to_go_on(
    workplace: Path,
) -> None:
    asked = threading.Event()

    def hang(connection: socket.socket) -> None:
        asked.set()
        connection.recv(1)

    with server(hang) as uri:
        process = start(
            "dataset=demo", f"tracking.uri={uri}", "tracking.timeout_s=1000", cwd=workplace
        )
        assert asked.wait(120)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=120)

    # It was complete before the signal came.
    assert process.returncode == 0, said
    # A terminal folds lines that are too long, wherever that is.
    plain = "".join(said.split())
    assert re.search(r"putoff,sinceSIGTERMarrived;logitlaterwith:jevexpexport\S*outputs/", plain)
    assert len(list((workplace / "outputs").rglob("checksums.sha256"))) == 1


def test_a_redirect_is_not_followed(run: RunDirectory, tmp_path: Path) -> None:
    came: list[bytes] = []

    def elsewhere(connection: socket.socket) -> None:
        came.append(b"x")

    with server(elsewhere) as other:

        def redirect(connection: socket.socket) -> None:
            head = f"HTTP/1.1 307 Go\r\nLocation: {other}/x\r\nContent-Length: 0\r\n\r\n"
            connection.sendall(head.encode())

        with server(redirect) as uri:
            tracker = MlflowTracker(tracking(uri=uri, timeout_s=5.0), tmp_path)
            with pytest.raises(TrackingError, match=f"^{uri}: "):
                tracker.log(run)
    assert came == []


def test_the_process_ends_with_its_tracker(
    run: RunDirectory, processes: list[child._Process], tmp_path: Path
) -> None:
    def refuse(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 404 Gone\r\nContent-Length: 0\r\n\r\n")

    with server(refuse) as uri:
        tracker = MlflowTracker(tracking(uri=uri, timeout_s=5.0), tmp_path)
        for _ in range(2):
            with pytest.raises(TrackingError, match="404"):
                tracker.log(run)
        assert len(processes) == 1
        assert processes[0]._process.poll() is None
        del tracker

    assert processes[0]._process.returncode is not None
    assert not Path(processes[0].folder).exists()


def test_what_cannot_be_made_of_a_run_ends_the_call_and_no_more(
    run: RunDirectory, tmp_path: Path
) -> None:
    """What is made only when it is asked for comes back through the pipe, also a failure of it."""
    store = child.ChildStore(
        tracking(uri="http://127.0.0.1:1"), StoreLocation.of(None, tmp_path), {}
    )

    def fail(_: Path) -> None:
        raise ValueError("no numbers")

    with pytest.raises(TrackingError, match="report: ValueError: no numbers"):
        store._answer({"report": fail}, {"ask": "report", "argument": str(tmp_path)})


def test_the_time_grows_with_what_is_sent(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[float] = []

    def note(self: object, verb: str, arguments: object, answers: object, extra_s: float) -> None:
        asked.append(extra_s)
        raise TrackingError("enough")

    monkeypatch.setattr(child.ChildStore, "_call", note)
    settings = tracking(uri="http://127.0.0.1:1", traces=True)
    store = MlflowTracker(settings, tmp_path).store
    content = read(run, TASKS, settings, NO_REPORT)
    for changed in (content, replace(content, traces=None)):
        with pytest.raises(TrackingError):
            store.write(changed)
    size = sum(Path(path).stat().st_size for path in content.files)
    assert asked[1] == pytest.approx(size * child.SECONDS_A_BYTE)
    assert asked[0] - asked[1] == pytest.approx(len(TASKS) * child.SECONDS_A_TRACE)
