"""The llama.cpp provider: which server is asked, from `open` to `close`."""

from pathlib import Path
from typing import Any, Self

from jevexp.backends.llama_cpp.client import LlamaCompletions, code_of
from jevexp.backends.llama_cpp.server import (
    DEFAULT_URL,
    choose,
    facts,
    wait_until_ready,
    weights_to_serve,
)
from jevexp.backends.next_token import Decider
from jevexp.backends.prompt import PROMPT_VERSION
from jevexp.backends.readout import READOUT_VERSION
from jevexp.backends.server.managed import ManagedServer
from jevexp.backends.transport import Transport
from jevexp.core.decision import Decision, Request
from jevexp.settings import LlamaCppBackend, ModelIdentity
from jevexp.settings.base import read_secret


class LlamaCpp:
    """A llama.cpp server as a provider; see docs/reference/llama-cpp.md.

    The server is the one at `server.base_url`, else one that is started for `server.gguf` or the
    model's own weights, else the one at llama.cpp's default address.
    """

    cost_basis: str | None = None

    def __init__(self, settings: LlamaCppBackend, model: ModelIdentity) -> None:
        self._settings = settings
        self._model = model
        self._server: ManagedServer | None = None
        self._transport: Transport | None = None
        self._decider: Decider | None = None
        self._facts: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """The configured name."""
        return self._settings.name

    @property
    def max_concurrency(self) -> int | None:
        """The server's slots; before it is open, those that it will be started with."""
        if self._facts:
            slots: int | None = self._facts["total_slots"]
            return slots
        server = self._settings.server
        starts = weights_to_serve(server, self._model) is not None
        return server.slots if starts else None

    @property
    def server_pid(self) -> int | None:
        """The process of a server that was started here."""
        return self._server.pid if self._server else None

    def open(self, log_directory: Path) -> Self:
        """Connect to the server, or start it; its log goes to `log_directory`/server.log.

        Raises:
            InputError: the server cannot be reached or started. Nothing is left running.
        """
        try:
            self._open(log_directory)
        except BaseException:
            self.close()
            raise
        return self

    def _open(self, log_directory: Path) -> None:
        settings = self._settings
        gguf = weights_to_serve(settings.server, self._model)
        if gguf is None:
            url, key = (
                settings.server.base_url or DEFAULT_URL,
                read_secret(settings.server.key_env, "backend.server.key_env"),
            )
        else:
            self._server = ManagedServer(gguf, self._model.alias, settings.server)
            url, key = self._server.start(log_directory), self._server.key
        self._transport = Transport(
            url, key, settings.connect_timeout_s, settings.request_timeout_s, code_of=code_of
        )
        listed = wait_until_ready(self._transport, url, settings.server)
        model = choose(listed, self._model.alias, url)
        # A router serves many models and has to be told which one is meant.
        routed = self._model.alias if len(listed) > 1 else None
        self._facts = {
            "kind": settings.kind,
            "managed": gguf is not None,
            # A started server's port is another one in every run.
            "base_url": url if gguf is None else url.rpartition(":")[0],
            # What a server that was started here was started with.
            "gguf": str(gguf) if gguf is not None else None,
            "library": ManagedServer.library() if gguf is not None else None,
            "cache_type_k": settings.server.cache_type_k if gguf is not None else None,
            "cache_type_v": settings.server.cache_type_v if gguf is not None else None,
            **facts(self._transport, model, routed=routed),
            "prompt_version": PROMPT_VERSION,
            "template_kwargs": dict(settings.template.kwargs),
            "readout": {"version": READOUT_VERSION, **settings.readout.model_dump()},
        }
        route = {"model": routed} if routed else {}
        client = LlamaCompletions(self._transport, settings, route)
        self._decider = Decider(client, self._facts["model"])

    def close(self) -> None:
        """Close the connection and end a server that was started here."""
        self._decider = None
        transport, self._transport = self._transport, None
        server, self._server = self._server, None
        try:
            if transport is not None:
                transport.close()
        finally:
            if server is not None:
                server.stop()

    def describe(self) -> dict[str, Any]:
        """What the server said when it was opened; null for what it did not say."""
        return dict(self._facts)

    def decide(self, request: Request) -> Decision:
        """Ask once and read the distribution over the options."""
        if self._decider is None:
            raise RuntimeError("the backend is not open")
        return self._decider.decide(request)
