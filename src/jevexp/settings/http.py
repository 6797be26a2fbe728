"""Providers behind an HTTP address: what they share, the System One wire, OpenAI's API."""

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from jevexp.settings.base import BackendSettings, EnvironmentVariable, FrozenSettings, Seconds
from jevexp.untrusted.addresses import check_address

HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]


class ServerCommand(FrozenSettings):
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


class SystemOneBackend(HttpBackend):
    """A service at `POST {base_url}/v1/systemone`: TypeSafe's own, or any compatible server."""

    kind: Literal["systemone"]


class OpenAIBackend(HttpBackend):
    """Base of these providers' settings; `/v1/…` is added to `base_url`.

    `options` become fields of every request that is read, and the fields that `remove` names are
    left out of it.
    """

    options: dict[str, Any]
    remove: tuple[str, ...]

    # What the answer could not be read without.
    reserved: ClassVar[frozenset[str]] = frozenset({"model", "messages", "prompt", "stream", "n"})

    @model_validator(mode="after")
    def _leaves_the_rest_alone(self) -> Self:
        if self.base_url is not None and self.base_url.rstrip("/").endswith("/v1"):
            raise ValueError("base_url: ends in /v1, which is added; leave it out")
        self._check("options", self.options)
        self._check("remove", self.remove)
        return self

    def _check(self, field: str, names: Iterable[str]) -> None:
        if taken := sorted(self.reserved & set(names)):
            raise ValueError(f"{field}: {taken[0]} is set here; leave it out")


class OpenAIChatBackend(OpenAIBackend):
    """Verbalized probabilities; an answer is at most `max_tokens` long."""

    kind: Literal["openai_chat"]
    max_tokens: Annotated[int, Field(ge=1)]


class LogprobsTemplate(FrozenSettings):
    """Options for the server's own chat template."""

    kwargs: dict[str, Any]


class LogprobsReadout(FrozenSettings):
    """How the distribution is read.

    `bias` is added to every candidate's logit where the server's probabilities know of it;
    `top_logprobs` is how many tokens the server is asked to list, where it agrees to so many.
    """

    bias: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
    top_logprobs: Annotated[int, Field(ge=2, le=1000)]


class OpenAILogprobsBackend(OpenAIBackend):
    """One next-token distribution a decision, as far as the server shows it.

    `route` null: completions where the server renders its chat template, else chat.
    """

    kind: Literal["openai_logprobs"]
    route: Literal["chat", "completions"] | None
    template: LogprobsTemplate
    readout: LogprobsReadout

    reserved: ClassVar[frozenset[str]] = OpenAIBackend.reserved | {
        "logprobs",
        "top_logprobs",
        "logit_bias",
        "temperature",
    }
