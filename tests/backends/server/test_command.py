"""Servers started from a command, from start to end, whichever end that is."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from jevexp.backends.server import LOG_NAME, CommandServer
from jevexp.errors import InputError
from jevexp.settings import ServerCommand
from tests.backends.server.started import alive, gone, pids, server

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[CommandServer]:
    running = server()
    running.start(tmp_path)
    yield running
    running.stop()


def why_not(refused: CommandServer, directory: Path) -> str:
    """The line that says why a server could not be started; nothing is left of it."""
    with pytest.raises(InputError) as raised:
        refused.start(directory)
    assert "\n" not in str(raised.value)
    assert refused.pid is None
    return str(raised.value)


def test_it_answers_on_a_free_port_and_logs_into_the_directory(tmp_path: Path) -> None:
    one, other = server(), server()
    try:
        urls = [running.start(tmp_path) for running in (one, other)]
        assert len(set(urls)) == 2
        for url in urls:
            assert url.startswith("http://127.0.0.1:")
            assert httpx.get(url, trust_env=False).status_code == 404
    finally:
        one.stop()
        other.stop()
    assert len(pids(tmp_path)) == 2


def test_a_key_of_its_own_for_every_start(tmp_path: Path) -> None:
    keys = set()
    for _ in range(2):
        running = server("keyed=THE_KEY", api_key_env="THE_KEY")
        try:
            url = running.start(tmp_path)
            assert running.key is not None
            assert httpx.get(url, trust_env=False).status_code == 401
            bearer = {"Authorization": f"Bearer {running.key}"}
            assert httpx.get(url, headers=bearer, trust_env=False).status_code == 404
            keys.add(running.key)
        finally:
            running.stop()
    assert len(keys) == 2
    assert min(map(len, keys)) > 40
    assert "THE_KEY" not in os.environ
    assert not any(key in path.read_text() for key in keys for path in tmp_path.iterdir())


def test_without_a_variable_there_is_no_key() -> None:
    assert server().key is None


def test_a_server_that_is_not_started_here_gets_no_key_of_ours() -> None:
    with pytest.raises(ValueError, match="api_key_env: only a server that command starts"):
        ServerCommand(command=None, start_timeout_s=1.0, api_key_env="THE_KEY")


def test_it_is_waited_for_while_it_says_that_it_is_loading(tmp_path: Path) -> None:
    loading = server("loading=3")
    url = loading.start(tmp_path)
    assert httpx.get(url, trust_env=False).status_code == 404
    loading.stop()
    assert (tmp_path / LOG_NAME).read_text().count(" 503 ") == 3


def test_stopping_ends_it_and_what_it_started_also_when_they_refuse(tmp_path: Path) -> None:
    family = server("family")
    family.start(tmp_path)
    found = pids(tmp_path)
    assert len(found) == 2
    assert all(map(alive, found))
    family.stop()
    assert gone(*found)
    assert family.pid is None


def test_stopping_a_willing_server_takes_no_time(started: CommandServer) -> None:
    before = time.monotonic()
    started.stop()
    assert time.monotonic() - before < 1


def test_stopping_is_harmless_before_the_start_and_twice_after(started: CommandServer) -> None:
    server().stop()
    started.stop()
    started.stop()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_us(tmp_path: Path, end: signal.Signals) -> None:
    command = [sys.executable, "-m", "tests.backends.server.holder", str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        found = pids(tmp_path)
        assert all(map(alive, found))
        process.send_signal(end)
        process.wait(60)
    assert len(found) == 2
    assert gone(*found)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells the server")
def test_it_ends_with_its_guard(started: CommandServer, tmp_path: Path) -> None:
    assert started.pid is not None
    os.kill(started.pid, signal.SIGKILL)
    assert gone(*pids(tmp_path))
    started.stop()


def test_a_terminal_s_ctrl_c_does_not_reach_it(started: CommandServer, tmp_path: Path) -> None:
    (pid,) = pids(tmp_path)
    assert os.getpgid(pid) == started.pid
    assert os.getsid(pid) == started.pid


def test_it_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    running = server()
    starting = threading.Thread(target=lambda: running.start(tmp_path))
    starting.start()
    starting.join()
    time.sleep(0.2)
    assert all(map(alive, pids(tmp_path)))
    running.stop()


def test_a_program_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    settings = ServerCommand(command=("no-such-program", "{port}"), start_timeout_s=5.0)
    assert why_not(CommandServer(settings), tmp_path) == (
        "backend.server.command: no such program: no-such-program; install it into this "
        "environment, or give its path"
    )


def test_a_program_that_cannot_run_is_one_line(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x00\x01 no program")
    program.chmod(0o755)
    settings = ServerCommand(command=(str(program), "{port}"), start_timeout_s=30.0)
    words = f"{program}: Exec format error"
    assert why_not(CommandServer(settings), tmp_path).startswith(
        f"backend.server.command: program ended while starting: {words}; see {tmp_path}"
    )


def test_a_server_that_ends_while_starting_is_refused_with_its_last_words(tmp_path: Path) -> None:
    (tmp_path / LOG_NAME).write_text("an earlier server's words\n")
    reason = why_not(server("says=no model here"), tmp_path)
    assert reason.startswith(
        f"backend.server.command: {Path(sys.executable).name} ended while starting: no model here; "
    )


def test_a_server_that_takes_too_long_is_refused_and_ended(tmp_path: Path) -> None:
    reason = why_not(server("silent", start_timeout_s=1.0), tmp_path)
    assert reason.startswith("backend.server.start_timeout_s: ")
    assert "did not answer within 1 s" in reason
    assert gone(*pids(tmp_path))


def test_a_command_without_a_place_for_the_port_is_refused() -> None:
    with pytest.raises(InputError, match=r"command: holds no \{port\}"):
        ServerCommand.of({"command": ["serve", "--port", "80"], "start_timeout_s": 1.0})
