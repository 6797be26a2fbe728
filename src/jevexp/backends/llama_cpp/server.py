"""A llama.cpp server, running or started here: whether it is ready, what it says of itself."""

import selectors
import time
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

from jevexp.backends.connection import Connection, unusable
from jevexp.backends.llama_cpp.client import code_of
from jevexp.backends.llama_cpp.weights import decision_type_of, weights_to_serve
from jevexp.backends.served_model import choose, facts, listed_models
from jevexp.backends.server import StartedServer
from jevexp.backends.transport import Failure, Transport
from jevexp.errors import InputError
from jevexp.settings import LlamaCppBackend, LlamaServer, ModelIdentity
from jevexp.settings.base import read_secret

DEFAULT_URL = "http://127.0.0.1:8080"
_POLL_S = 0.2
# What a server is started with, beside the model's file and name.
_START_FIELDS = {"context", "threads", "slots", "cache_type_k", "cache_type_v", "gpu_layers"}

# Decision models that read a whole prompt at once, or a whole question.
_AT_ONCE_TYPES = {"laya", "clef", "kev"}


class ManagedServer(StartedServer):
    """A server for one model file, on 127.0.0.1 and a port that the system chooses.

    It wants its key in every request but `/health`.
    """

    def __init__(self, gguf: Path, alias: str, settings: LlamaServer) -> None:
        super().__init__(token_urlsafe(32))
        self.gguf = gguf
        self._alias = alias
        self._settings = settings

    def _start(self, log: Path) -> str:
        if find_spec("xllamacpp") is None:
            raise InputError(
                "backend.server: xllamacpp is not installed; pip install 'jevexp[local]'"
            )
        if not self.gguf.is_file():
            raise InputError(f"backend.server.gguf: no such file: {self.gguf}; give a GGUF file")
        request = {
            "gguf": str(self.gguf.resolve()),
            "alias": self._alias,
            "api_key": self.key,
            "at_once": decision_type_of(self.gguf) in _AT_ONCE_TYPES,
        }
        process = self._launch(request | self._settings.model_dump(include=_START_FIELDS), log)
        assert process.stdout is not None  # noqa: S101 - for the type checker
        deadline = time.monotonic() + self._settings.start_timeout_s
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            # The line that the child writes once its model is loaded.
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise InputError(
                        f"backend.server.start_timeout_s: {self.gguf.name} was not loaded within "
                        f"{self._settings.start_timeout_s:g} s; see {log}"
                    )
                piece = process.stdout.read(4096)
                if not piece:
                    raise InputError(
                        f"backend.server: the server for {self.gguf.name} {self._ended(log)}"
                    )
                line += piece
        return line.decode().strip()


def connect(settings: LlamaCppBackend, model: ModelIdentity, log_directory: Path) -> Connection:
    """A connection to the configured server, whose model may still be loading.

    The server is the one at `server.base_url`, else one that is started for `server.gguf` or the
    model's own weights, else the one at llama.cpp's default address. Raises InputError where a
    secret is not set or the server cannot be started.
    """
    server, gguf = settings.server, weights_to_serve(settings.server, model)
    return Connection(
        ManagedServer(gguf, model.alias, server) if gguf else server.base_url or DEFAULT_URL,
        log_directory,
        settings.connect_timeout_s,
        settings.request_timeout_s,
        key=None if gguf else read_secret(server.key_env, "backend.server.key_env"),
        code_of=code_of,
    )


def inspect(
    connection: Connection, server: LlamaServer, alias: str
) -> tuple[dict[str, str], dict[str, Any]]:
    """Wait until the model is loaded; returns its route and what is known of the server.

    The route is part of every request's body: it tells a router, which serves many models, which
    one is meant. The facts are null where the server does not say. Raises InputError where it
    cannot be reached or used.
    """
    listed = wait_until_ready(connection.transport, connection.url, server)
    answering = choose(listed, alias, connection.url)
    route = {"model": alias} if len(listed) > 1 else {}
    # What a server that was started here was started with.
    started: dict[str, Any] = dict.fromkeys(("gguf", "library", "cache_type_k", "cache_type_v"))
    if isinstance(connection.server, ManagedServer):
        started = {
            "gguf": str(connection.server.gguf),
            "library": f"xllamacpp {version('xllamacpp')}",
            "cache_type_k": server.cache_type_k,
            "cache_type_v": server.cache_type_v,
        }
    return route, started | facts(connection.transport, answering, route)


def wait_until_ready(
    transport: Transport, url: str, server: LlamaServer
) -> list[Mapping[str, Any]]:
    """Wait while the server loads its model; returns the entries of its `/v1/models`.

    Raises InputError: not reachable, not allowed, no llama.cpp server, or loading took too long.
    """
    deadline = time.monotonic() + server.start_timeout_s
    while True:
        try:
            _check_loaded(transport)
            listed = listed_models(transport.get("/v1/models").body)
        except Failure as failure:
            if failure.status != 503:
                todo = "start llama-server there, or set backend.server.base_url=URL"
                if server.base_url is None:
                    todo = (
                        "model.weights names no file on this machine: start llama-server there, or "
                        "set backend.server.gguf=FILE"
                    )
                raise unusable(
                    failure, url, "llama-server", todo, key_env=server.key_env, at="backend.server"
                ) from failure
            if time.monotonic() > deadline:
                raise InputError(
                    f"backend.server.start_timeout_s: {url} is still loading its model after "
                    f"{server.start_timeout_s:g} s; wait for it, or raise the limit"
                ) from failure
            time.sleep(_POLL_S)
            continue
        if not listed:
            reason = f"{url} lists no model at /v1/models; start llama-server there"
            raise InputError(f"backend.server.base_url: {reason}")
        return listed


def _check_loaded(transport: Transport) -> None:
    """Not by `/health`: a gateway would ask every model that it has there, for money."""
    try:
        transport.get("/props")
    except Failure as failure:
        # Gateways hide it, and routers want a model's name. Who answers is seen at /v1/models.
        if failure.status in (None, 401, 403, 503):
            raise
