"""What providers behind an HTTP address share: where they are, who we are, how long we wait."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from jevexp.settings.base import BackendSettings, EnvironmentVariable, Model, Seconds
from jevexp.untrusted.addresses import check_address

HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]


class ServerCommand(Model):
    """How a server is started for the run; `{port}` in `command` becomes a free port.

    `api_key_env` is the environment variable in which the server looks for the key that it is to
    want: it finds a new one there in every run. A field with a default came later.
    """

    command: tuple[str, ...] | None
    start_timeout_s: Seconds
    api_key_env: EnvironmentVariable | None = None

    @model_validator(mode="after")
    def _has_port(self) -> Self:
        if self.command is not None and not any("{port}" in word for word in self.command):
            raise ValueError(
                "command: holds no {port}; the server is told a free port in its place"
            )
        if self.api_key_env is not None and self.command is None:
            raise ValueError("api_key_env: only a server that command starts gets a key of ours")
        return self


class HttpBackend(BackendSettings):
    """Base of these providers' settings; either `base_url` or `server.command` says where."""

    base_url: str | None
    key_env: EnvironmentVariable | None
    header_env: dict[HeaderName, EnvironmentVariable]
    allow_http: bool
    connect_timeout_s: Seconds
    timeout_s: Seconds
    server: ServerCommand

    @model_validator(mode="after")
    def _one_address(self) -> Self:
        if self.base_url is None and self.server.command is None:
            raise ValueError(
                "base_url: missing; give a running server's address, or in server.command how to "
                "start one"
            )
        if self.base_url is not None and self.server.command is not None:
            raise ValueError("base_url: give either a running server's address or server.command")
        if self.base_url is None:
            if self.key_env is not None or self.header_env:
                # It would write into the run's directory, as a server's log is part of a run.
                raise ValueError(
                    "key_env: a server that is started here is asked without key and headers; set "
                    "key_env=null and header_env={}"
                )
            return self
        check_address(self.base_url, allow_http=self.allow_http)
        return self
