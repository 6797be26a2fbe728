"""What every provider behind an HTTP address holds between `open` and `close`."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from jevexp.backends.server import CommandServer, StartedServer
from jevexp.backends.transport import Failure, Transport, http_error
from jevexp.core.decision import Decision, Request
from jevexp.core.task import Task
from jevexp.settings import BackendSettings, ModelIdentity
from jevexp.settings.backends import HttpBackend
from jevexp.settings.base import read_secret


class Connection:
    """A running service, or one that is started here and ended with `close`.

    Args:
        service: a running service's base URL, or a server to start.
        log_directory: where a started server's log goes.
        connect_s: limit for connecting, in seconds.
        request_s: limit for a whole exchange, in seconds.
        key: the key that a running service wants; a started server has its own.
        headers: further headers, as secret as the key.
        code_of: the safe code for the parsed body of an HTTP error.

    Attributes:
        transport: the service.
        url: where it is.
        server: the server that was started here, or None.

    Raises:
        InputError: the server cannot be started. Nothing is left running.
    """

    def __init__(
        self,
        service: str | StartedServer,
        log_directory: Path,
        connect_s: float,
        request_s: float,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        code_of: Callable[[Any], str] = http_error,
    ) -> None:
        self.server = None if isinstance(service, str) else service
        self.url = service if isinstance(service, str) else service.start(log_directory)
        key = self.server.key if self.server else key
        try:
            self.transport = Transport(
                self.url, key, connect_s, request_s, headers=headers, code_of=code_of
            )
        except BaseException:
            if self.server is not None:
                self.server.stop()
            raise

    @property
    def managed(self) -> bool:
        """Whether the server was started here."""
        return self.server is not None

    @property
    def base_url(self) -> str:
        """The address for the record: a started server's port is another one in every run."""
        return self.url.rpartition(":")[0] if self.managed else self.url

    def close(self) -> None:
        """Close the connection and end a server that was started here; harmless when repeated."""
        try:
            self.transport.close()
        finally:
            if self.server is not None:
                self.server.stop()


class HttpConnection(Connection):
    """The service that the settings of an HTTP provider describe.

    Raises:
        InputError: a secret is not set, or the server cannot be started. Nothing is left running.
    """

    def __init__(
        self,
        settings: HttpBackend,
        log_directory: Path,
        *,
        code_of: Callable[[Any], str] = http_error,
    ) -> None:
        super().__init__(
            settings.base_url or CommandServer(settings.server),
            log_directory,
            settings.connect_timeout_s,
            settings.timeout_s,
            key=read_secret(settings.key_env, "backend.key_env"),
            headers={
                name: read_secret(variable, f"backend.header_env.{name}") or ""
                for name, variable in settings.header_env.items()
            },
            code_of=code_of,
        )


def reason_of(failure: Failure, service: str) -> str:
    """Why a service cannot be used; `service` is what it should be."""
    return {
        "connection_failed": "no server answers there",
        "timeout": "it does not answer in time",
        "http_error": f"HTTP {failure.status}",
    }.get(failure.code, f"it does not answer like {service}")


def key_refusal(failure: Failure, url: str, field: str, key_env: str | None) -> str | None:
    """What to tell a person whose key was refused, or who gave none; None where that is not it."""
    if failure.status not in (401, 403):
        return None
    todo = key_advice(field, key_env)
    return f"{field}: {url} wants an API key (HTTP {failure.status}); {todo}"


def key_advice(field: str, key_env: str | None) -> str:
    """What to do about a refused key, which the variable `key_env` holds, if there is any."""
    if key_env is None:
        return f"set {field} to the environment variable that holds its API key"
    return f"check the API key in the environment variable {key_env}"


AnySettings = TypeVar("AnySettings", bound=BackendSettings)
AnyConnection = TypeVar("AnyConnection", bound=Connection)


class OpenedBackend(Generic[AnySettings]):
    """Who a provider is, and how it opens and ends; its module's `make` is its class.

    A subclass has `_open`, which sets `_facts`, what is found out on the way, and `_ask`, which
    decides one request. `_resources` ends with `close`.
    """

    cost_basis: str | None = None

    def __init__(
        self, settings: AnySettings, model: ModelIdentity, tasks: Iterable[Task] = ()
    ) -> None:
        # Only a provider that makes its answers up looks at them.
        del tasks
        self._settings = settings
        self._model = model
        self._resources = ExitStack()
        self._facts: dict[str, Any] = {}
        self._ask: Callable[[Request], Decision] | None = None

    @property
    def name(self) -> str:
        """The configured name."""
        return self._settings.name

    def open(self, log_directory: Path) -> Self:
        """Make ready to answer; a server that is started here logs into `log_directory`.

        Raises:
            InputError: the provider cannot be reached, started or used, or a secret is not set.
                Nothing is left running.
        """
        try:
            self._open(log_directory)
        except BaseException:
            self.close()
            raise
        return self

    def _open(self, log_directory: Path) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Close what was opened and end what was started here; harmless when repeated."""
        self._ask = None
        self._resources.close()

    def describe(self) -> dict[str, Any]:
        """What was found out when it was opened; null for what the service did not say."""
        return dict(self._facts)

    def decide(self, request: Request) -> Decision:
        """Ask once; every failure of the service or of the model is a decision that is not ok."""
        if self._ask is None:
            raise RuntimeError("the backend is not open")
        return self._ask(request)


class Connected(OpenedBackend[AnySettings]):
    """A provider over a connection, which `_open` gives to `_hold` and then adds facts."""

    _connection: Connection | None = None

    def _hold(self, connection: AnyConnection) -> AnyConnection:
        self._connection = connection
        self._resources.callback(connection.close)
        self._facts = {
            "kind": self._settings.kind,
            "managed": connection.managed,
            "base_url": connection.base_url,
        }
        return connection

    @property
    def max_concurrency(self) -> int | None:
        """Any number."""
        return None

    @property
    def server_pid(self) -> int | None:
        """The process of a server that was started here."""
        server = self._connection.server if self._connection else None
        return server.pid if server else None
