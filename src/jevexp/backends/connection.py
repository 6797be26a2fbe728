"""What every provider behind an HTTP address holds between `open` and `close`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from jevexp.backends.server.command import CommandServer
from jevexp.backends.transport import Transport
from jevexp.settings.backends import HttpBackend
from jevexp.settings.base import read_secret


def http_error(_body: Any) -> str:
    """The code for an HTTP error whose body is not looked at."""
    return "http_error"


class Connection:
    """A running service, or one that is started here and ended with `close`.

    Args:
        settings: where it is or how it is started, and who we are.
        log_directory: where a started server's log goes.
        code_of: the safe code for the parsed body of an HTTP error.

    Attributes:
        transport: the service.
        url: where it is.

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
        key = read_secret(settings.key_env, "backend.key_env")
        headers = {
            name: read_secret(variable, f"backend.header_env.{name}") or ""
            for name, variable in settings.header_env.items()
        }
        self._server: CommandServer | None = None
        if settings.base_url is not None:
            self.url = settings.base_url
        else:
            self._server = CommandServer(settings.server)
            self.url = self._server.start(log_directory)
            key = self._server.key
        try:
            self.transport = Transport(
                self.url,
                key,
                settings.connect_timeout_s,
                settings.timeout_s,
                headers=headers,
                code_of=code_of,
            )
        except BaseException:
            if self._server is not None:
                self._server.stop()
            raise

    @property
    def managed(self) -> bool:
        """Whether the server was started here."""
        return self._server is not None

    @property
    def base_url(self) -> str:
        """The address for the record: a started server's port is another one in every run."""
        return self.url.rpartition(":")[0] if self.managed else self.url

    @property
    def pid(self) -> int | None:
        """The process of a server that was started here."""
        return self._server.pid if self._server else None

    def close(self) -> None:
        """Close the connection and end a server that was started here; harmless when repeated."""
        try:
            self.transport.close()
        finally:
            if self._server is not None:
                self._server.stop()


AnySettings = TypeVar("AnySettings", bound=HttpBackend)
AnyConnection = TypeVar("AnyConnection", bound=Connection)


class Connected(Generic[AnySettings, AnyConnection]):
    """What the providers over a connection have in common: who they are, and how they end."""

    cost_basis: str | None = None
    max_concurrency: int | None = None

    def __init__(self, settings: AnySettings) -> None:
        self._settings = settings
        self._connection: AnyConnection | None = None
        self._facts: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """The configured name."""
        return self._settings.name

    @property
    def server_pid(self) -> int | None:
        """The process of a server that was started here."""
        return self._connection.pid if self._connection else None

    def close(self) -> None:
        """Close the connection and end a server that was started here."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def describe(self) -> dict[str, Any]:
        """What was found out when it was opened; null for what the service did not say."""
        return dict(self._facts)
