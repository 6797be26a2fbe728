"""Any judgevet provider, through the bridge of the benchmark's reference runner."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from jevexp.settings.base import BackendSettings, EnvironmentVariable, Model, Seconds
from jevexp.untrusted.addresses import check_address

FactoryPath = Annotated[
    str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")
]


class TypevetSession(Model):
    """Which typevet session answers; it is told so in `TYPEVET_*` variables of its own.

    `framing` is for llama.cpp servers, `distributions` is the JSON file of the fake.
    """

    backend: Literal["fake", "llama_cpp", "vllm"]
    framing: Literal["chatml_thinking"] | None
    distributions: str | None

    @model_validator(mode="after")
    def _options_read(self) -> Self:
        if self.framing is not None and self.backend != "llama_cpp":
            raise ValueError("framing: only backend=llama_cpp takes one; set framing=null")
        if self.distributions is not None and self.backend != "fake":
            raise ValueError("distributions: only backend=fake is told its answers")
        return self


class JudgevetBackend(BackendSettings):
    """A judgevet provider: its own HTTP adapter, a typevet session, or one from a factory.

    `base_url` and `key_env` are for providers behind an address, which a typevet fake and a
    factory are not. `factory` names code to run.
    """

    kind: Literal["judgevet"]
    provider: Literal["http", "typevet", "factory"]
    base_url: str | None
    key_env: EnvironmentVariable | None
    allow_http: bool
    timeout_s: Seconds
    typevet: TypevetSession
    factory: FactoryPath | None

    @property
    def has_address(self) -> bool:
        """Whether the provider is asked over HTTP, at `base_url`."""
        if self.provider == "typevet":
            return self.typevet.backend != "fake"
        return self.provider == "http"

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.provider == "factory") != (self.factory is not None):
            raise ValueError("factory: package.module:callable goes with provider=factory only")
        if self.base_url is not None:
            check_address(self.base_url, allow_http=self.allow_http)
        elif self.has_address:
            raise ValueError("base_url: missing; set backend.base_url=URL")
        return self
