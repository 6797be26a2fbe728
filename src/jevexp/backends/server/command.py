"""Starting any server from a command, knowing when it answers, and never leaving it behind."""

import fcntl
import os
import shutil
import socket
import subprocess
import sysconfig
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from io import FileIO
from pathlib import Path
from secrets import token_urlsafe

from jevexp.backends.server.process import LOG_NAME, end, last_words, parent_to_name
from jevexp.backends.transport import Failure, Transport
from jevexp.core.json import dumps
from jevexp.errors import InputError
from jevexp.settings import ServerCommand
from jevexp.store.cache import cache_folder
from jevexp.untrusted.python import python_module
from jevexp.untrusted.writing import Folder, append

_POLL_S = 0.05
# A server that takes the connection and is silent is asked again.
_ANSWER_S = 2.0
_LOADING = 503


class CommandServer:
    """One server, started from the configured command on a port of 127.0.0.1 that is free.

    It has a session of its own, so that a terminal's Ctrl-C reaches only us and the run can end
    in order. It ends with `stop`, and also when this process ends in any way; so do the processes
    that it started, as long as they stay in its process group.

    Attributes:
        key: what the server was told to want in requests, another one each time; None where it was
            told nothing.
    """

    def __init__(self, settings: ServerCommand) -> None:
        self.key = token_urlsafe(32) if settings.api_key_env is not None else None
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._port: int | None = None
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        """The server's process group, or None when there is none."""
        return self._process.pid if self._process else None

    def start(self, log_directory: Path) -> str:
        """Start the server and wait until it answers; returns its base URL.

        Its `/health` may say with HTTP 503 that it is still loading; any other answer counts.

        Raises:
            InputError: no command, no such program, or the server ended or took too long.
        """
        if not self._settings.command:
            raise InputError("backend.server.command: missing; give the command that starts it")
        program = _program(self._settings.command[0])
        self._port = port = claim_port()
        words = [program, *self._settings.command[1:]]
        command = [word.replace("{port}", str(port)) for word in words]
        log = log_directory / LOG_NAME
        url = f"http://127.0.0.1:{port}"
        try:
            self._launch(command, log)
            self._wait(url, log)
        except BaseException:
            self.stop()
            raise
        return url

    def stop(self) -> None:
        """End the server, politely first; harmless when there is none."""
        process, self._process = self._process, None
        if process is not None:
            end(process)
        port, self._port = self._port, None
        if port is not None:
            release_port(port)

    def _launch(self, command: Sequence[str], log: Path) -> None:
        with append(log) as output:
            self._log_start = output.tell()
            self._process = subprocess.Popen(
                python_module("jevexp.backends.server.guard"),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
                bufsize=0,
                env=self._environment(),
            )
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        asked = {"parent": parent_to_name(), "command": command}
        # A guard that is gone already is reported by the log, not by this pipe.
        with suppress(BrokenPipeError):
            self._process.stdin.write(dumps(asked).encode() + b"\n")

    def _environment(self) -> dict[str, str]:
        name = self._settings.api_key_env
        return dict(os.environ) | ({name: self.key} if name and self.key else {})

    def _wait(self, url: str, log: Path) -> None:
        deadline = time.monotonic() + self._settings.start_timeout_s
        transport = Transport(url, self.key, _ANSWER_S, _ANSWER_S)
        try:
            while True:
                answered = _answers(transport)
                self._check_running(log)
                if answered:
                    return
                if time.monotonic() > deadline:
                    raise InputError(
                        f"backend.server.start_timeout_s: {self._name} did not answer within "
                        f"{self._settings.start_timeout_s:g} s; see {log}"
                    )
                time.sleep(_POLL_S)
        finally:
            transport.close()

    def _check_running(self, log: Path) -> None:
        # Also after an answer, which may be another program's that took the port.
        if self._process is None or self._process.poll() is not None:
            raise InputError(
                f"backend.server.command: {self._name} ended while starting: "
                f"{last_words(log, self._log_start)}; see {log}"
            )

    @property
    def _name(self) -> str:
        return Path((self._settings.command or ("",))[0]).name


def _program(name: str) -> str:
    """Where a command's program is: beside our own Python, which may not be on the path, first."""
    for path in (sysconfig.get_path("scripts"), None):
        if found := shutil.which(name, path=path):
            return found
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


HOST = "127.0.0.1"


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
            return port
        else:
            return port


def release_port(port: int) -> None:
    """Let others choose a port again."""
    with suppress(OSError):
        fcntl.lockf(_claims(), fcntl.LOCK_UN, 1, port)


@cache
def _claims() -> FileIO:
    """A file with one byte a port to lock; closing it anywhere would give up all of them."""
    path = cache_folder() / "ports.lock"
    with Folder.named(path.parent) as folder:
        return folder.append(path.name)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
