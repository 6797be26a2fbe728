"""Servers that are started for a run, on 127.0.0.1, and never left behind."""

import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sysconfig
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import cache
from io import FileIO
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

from jevexp.backends.server_child import parent_to_name
from jevexp.backends.transport import Failure, Transport
from jevexp.core.json import dumps
from jevexp.errors import InputError
from jevexp.settings import ServerCommand
from jevexp.store.cache import cache_folder
from jevexp.untrusted.files import opened
from jevexp.untrusted.python import python_module
from jevexp.untrusted.writing import Folder, append

LOG_NAME = "server.log"
_HOST = "127.0.0.1"
_STOP_TIMEOUT_S = 3.0
_POLL_S = 0.05
# A server that takes the connection and is silent is asked again.
_ANSWER_S = 2.0
_LOADING = 503
# When a server logs without end, the beginning has the cause.
_MOST_BYTES = 4 << 20
# How a line of llama.cpp's log begins: a clock, then the level.
_ERROR = re.compile(r"[\d.]+ E +")


class StartedServer(ABC):
    """A server in a process of its own.

    It leads a session of its own, so that a terminal's Ctrl-C reaches only us and the run can end
    in order. It ends with `stop`, and also when this process ends in any way. It wants `key` in
    requests, another one each time, in no file and on no command line; None where it wants none.
    """

    def __init__(self, key: str | None) -> None:
        self.key = key
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        """The process, which leads its process group; None when there is none."""
        return self._process.pid if self._process else None

    def start(self, log_directory: Path) -> str:
        """Start the server and wait until it answers; returns its base URL.

        Raises InputError where it cannot be started, ends or takes too long; nothing is left
        running.
        """
        try:
            return self._start(log_directory / LOG_NAME)
        except BaseException:
            self.stop()
            raise

    @abstractmethod
    def _start(self, log: Path) -> str:
        """Launch the process and wait until the server answers; returns its base URL."""

    def stop(self) -> None:
        """End the server, politely first and then its whole group; harmless when there is none."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        finally:
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()

    def _launch(
        self, request: Mapping[str, Any], log: Path, environment: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        with append(log) as output:
            self._log_start = output.tell()
            self._process = process = subprocess.Popen(
                python_module("jevexp.backends.server_child"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
                bufsize=0,
                env=environment,
            )
        assert process.stdin is not None  # noqa: S101 - for the type checker
        # When a child is gone already, the log says why.
        with suppress(BrokenPipeError):
            process.stdin.write(dumps({"parent": parent_to_name(), **request}).encode() + b"\n")
        return process

    def _ended(self, log: Path) -> str:
        return f"ended while starting: {last_words(log, self._log_start)}; see {log}"


def last_words(log: Path, start: int = 0) -> str:
    """Why a server gave up, from its log after byte `start`: one line without clock and level."""
    with opened(log, follow_links=False) as file:
        file.seek(start)
        lines = file.read(_MOST_BYTES).decode(errors="replace").splitlines()
    lines = [line.strip() for line in lines if line.strip()]
    # llama.cpp names the cause first and then every caller that failed with it.
    errors = [_ERROR.sub("", line) for line in lines if _ERROR.match(line)]
    return (errors or lines[-1:] or ["it wrote nothing"])[0][:300]


class CommandServer(StartedServer):
    """A server that the configured command starts, on a port of 127.0.0.1 that is free.

    The processes that it starts end with it, as long as they stay in its process group. Its
    `/health` may say with HTTP 503 that it is still loading; any other answer counts.
    """

    def __init__(self, settings: ServerCommand) -> None:
        super().__init__(token_urlsafe(32) if settings.api_key_env is not None else None)
        self._settings = settings
        self._port: int | None = None

    def _start(self, log: Path) -> str:
        settings = self._settings
        if not settings.command:
            raise InputError("backend.server.command: missing; give the command that starts it")
        program, *arguments = settings.command
        words = [_find_program(program), *arguments]
        self._port = claim_port()
        environment = dict(os.environ)
        if settings.api_key_env and self.key:
            environment[settings.api_key_env] = self.key
        command = [word.replace("{port}", str(self._port)) for word in words]
        process = self._launch({"command": command}, log, environment)
        url, name = f"http://{_HOST}:{self._port}", Path(program).name
        deadline = time.monotonic() + settings.start_timeout_s
        with closing(Transport(url, self.key, _ANSWER_S, _ANSWER_S)) as transport:
            while True:
                answered = _answers(transport)
                # Also after an answer, which may come from another program that took the port.
                if process.poll() is not None:
                    raise InputError(f"backend.server.command: {name} {self._ended(log)}")
                if answered:
                    return url
                if time.monotonic() > deadline:
                    raise InputError(
                        f"backend.server.start_timeout_s: {name} did not answer within "
                        f"{settings.start_timeout_s:g} s; see {log}"
                    )
                time.sleep(_POLL_S)

    def stop(self) -> None:
        """End the server, politely first; harmless when there is none."""
        super().stop()
        port, self._port = self._port, None
        if port is not None:
            release_port(port)


def _find_program(name: str) -> str:
    """Where a program is: beside our own Python, which may not be on the path, first."""
    for path in (sysconfig.get_path("scripts"), None):
        if program := shutil.which(name, path=path):
            return program
    raise InputError(
        f"backend.server.command: no such program: {name}; install it into this environment, or "
        "give its path"
    )


def _answers(transport: Transport) -> bool:
    try:
        transport.get("/health")
    except Failure as failure:
        return failure.status is not None and failure.status != _LOADING
    return True


def claim_port() -> int:
    """A port that is free now, and that no other process of this user claims meanwhile.

    It stays claimed until it is released, or this process ends. Where the cache folder takes no
    locks, the port is only free now.
    """
    while True:
        port = _free_port()
        try:
            fcntl.lockf(_claims(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except BlockingIOError:
            continue
        except OSError:
            pass
        return port


def release_port(port: int) -> None:
    """Let others choose a port again."""
    with suppress(OSError):
        fcntl.lockf(_claims(), fcntl.LOCK_UN, 1, port)


@cache
def _claims() -> FileIO:
    """A file with one byte a port to lock; closing it anywhere would give up all of them."""
    with Folder.named(cache_folder()) as folder:
        return folder.append("ports.lock")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port
