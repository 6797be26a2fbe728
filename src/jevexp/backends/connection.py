"""What every provider behind an HTTP address holds between `open` and `close`."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from jevexp.backends.causes import Failed, Service
from jevexp.backends.server import CommandServer, StartedServer
from jevexp.backends.transport import CLOSED, NO_HTTP, Failure, Transport, http_error
from jevexp.core.decision import Decision, Request
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.settings import BackendSettings, ModelIdentity
from jevexp.settings.backends import HttpBackend
from jevexp.settings.base import read_secret

# Why a service cannot be used, by the code of a failed request.
REASONS = {
    "certificate_refused": "its certificate is not trusted here",
    "connection_failed": "no server answers there",
    "timeout": "it does not answer in time",
    "tls_failed": "TLS fails",
}


class Connection:
    """A running service at a base URL, or a server that is started here and ended with `close`.

    Times are in seconds. A started server has a key of its own; `headers` are as secret as a key.
    `code_of` gives the safe code for the parsed body of an HTTP error. Raises InputError where the
    server cannot be started; nothing is left running then.
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
    def base_url(self) -> str:
        """The address for the record: a started server's port is another one in every run."""
        return self.url.rpartition(":")[0] if self.server else self.url

    def close(self) -> None:
        """Close the connection and end a server that was started here; harmless when repeated."""
        try:
            self.transport.close()
        finally:
            if self.server is not None:
                self.server.stop()


def connect(
    settings: HttpBackend, log_directory: Path, *, code_of: Callable[[Any], str] = http_error
) -> Connection:
    """A connection to the service that the settings of an HTTP provider describe.

    Raises InputError where a secret is not set or the server cannot be started.
    """
    headers = {
        name: read_secret(variable, f"backend.header_env.{name}") or ""
        for name, variable in settings.header_env.items()
    }
    return Connection(
        settings.address or CommandServer(settings.server),
        log_directory,
        settings.connect_timeout_s,
        settings.timeout_s,
        key=read_secret(settings.key_env, "backend.key_env"),
        headers=headers,
        code_of=code_of,
    )


def unusable(
    failure: Failure, url: str, service: str, todo: str, *, key_env: str | None, at: str = "backend"
) -> InputError:
    """What to tell a person who configured a service that cannot be used.

    `service` is what should answer at `url`; `at` is the group of settings that holds both fields.
    """
    failed = Failed(failure.code, failure.status, failure.evidence)
    todo = failed.todo(Service(url, at, key_env)) or todo
    if failed.refused:
        return InputError(f"{at}.key_env: {url} wants an API key (HTTP {failure.status}); {todo}")
    reason = REASONS.get(failure.code, f"it does not answer like {service}")
    if failure.code == "http_error":
        reason = f"HTTP {failure.status}"
    if failed.words in (CLOSED, NO_HTTP):
        reason = failed.words
    elif failed.words:
        reason += f" ({failed.words})"
    return InputError(f"{at}.base_url: {url} is not usable: {reason}; {todo}")


AnySettings = TypeVar("AnySettings", bound=BackendSettings)


class OpenedBackend(Generic[AnySettings]):
    """Who a provider is, and how it opens and ends; its module's `make` is its class.

    A subclass has `_open`, which sets `_facts`, what is found out on the way, and `_ask`, which
    decides one request. `_resources` ends with `close`.
    """

    cost_basis: str | None = None

    def __init__(
        self, settings: AnySettings, model: ModelIdentity, tasks: Iterable[Task] = ()
    ) -> None:
        self.name = settings.name
        self._settings = settings
        self._model = model
        self._tasks = tuple(tasks)
        self._resources = ExitStack()
        self._facts: dict[str, Any] = {}
        self._ask: Callable[[Request], Decision] | None = None

    def open(self, log_directory: Path) -> Self:
        """Make ready to answer; raises InputError, with nothing left running, where it cannot."""
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

    def _hold(self, connection: Connection) -> Connection:
        self._connection = connection
        self._resources.callback(connection.close)
        self._facts = {
            "kind": self._settings.kind,
            "managed": connection.server is not None,
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
