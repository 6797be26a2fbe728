"""Starting a llama.cpp server, knowing when it is ready, and never leaving it behind."""

import selectors
import subprocess
import time
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from secrets import token_urlsafe

from jevexp.backends.server.process import LOG_NAME, end, last_words, parent_to_name
from jevexp.core.json import dumps
from jevexp.errors import InputError
from jevexp.settings import LlamaServer
from jevexp.untrusted.python import python_module
from jevexp.untrusted.writing import append


class ManagedServer:
    """One server for one model file, on 127.0.0.1 and a port that the system chooses.

    It has a session of its own, so that a terminal's Ctrl-C reaches only us and the run can end
    in order. It ends with `stop`, and also when this process ends in any way.

    Attributes:
        key: what the server wants to see in every request but `/health`; another one each time, in
            no file and on no command line.
    """

    def __init__(self, gguf: Path, alias: str, settings: LlamaServer) -> None:
        self.key = token_urlsafe(32)
        self._gguf = gguf
        self._alias = alias
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        """The server's process, or None when there is none."""
        return self._process.pid if self._process else None

    @staticmethod
    def library() -> str:
        """Name and version of what the server comes from."""
        return f"xllamacpp {version('xllamacpp')}"

    def start(self, log_directory: Path) -> str:
        """Start the server and wait until its model is loaded; returns its base URL.

        Raises:
            InputError: no server library, no such file, or the server ended or took too long.
        """
        if find_spec("xllamacpp") is None:
            raise InputError(
                "backend.server: xllamacpp is not installed; pip install 'jevexp[local]'"
            )
        if not self._gguf.is_file():
            raise InputError(f"backend.server.gguf: no such file: {self._gguf}; give a GGUF file")
        log = log_directory / LOG_NAME
        try:
            self._launch(log)
            return self._address(log)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server, politely first; harmless when there is none."""
        process, self._process = self._process, None
        if process is not None:
            end(process)

    def _launch(self, log: Path) -> None:
        asked = {
            "parent": parent_to_name(),
            "gguf": str(self._gguf.resolve()),
            "alias": self._alias,
            "api_key": self.key,
            **self._settings.model_dump(
                include={
                    "context", "threads", "slots", "cache_type_k", "cache_type_v", "gpu_layers"
                }
            ),
        }  # fmt: skip
        with append(log) as stderr:
            self._log_start = stderr.tell()
            self._process = subprocess.Popen(
                python_module("jevexp.backends.server.child"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                bufsize=0,
            )
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        # A child that is gone already is reported by the log, not by this pipe.
        with suppress(BrokenPipeError):
            self._process.stdin.write(dumps(asked).encode() + b"\n")

    def _address(self, log: Path) -> str:
        """The line that the child writes once its model is loaded."""
        assert self._process is not None  # noqa: S101 - for the type checker
        assert self._process.stdout is not None  # noqa: S101 - for the type checker
        deadline = time.monotonic() + self._settings.start_timeout_s
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise InputError(
                        f"backend.server.start_timeout_s: {self._gguf.name} was not loaded within "
                        f"{self._settings.start_timeout_s:g} s; see {log}"
                    )
                piece = self._process.stdout.read(4096)
                if not piece:
                    raise InputError(
                        f"backend.server: the server for {self._gguf.name} ended while starting: "
                        f"{last_words(log, self._log_start)}; see {log}"
                    )
                line += piece
        return line.decode().strip()
