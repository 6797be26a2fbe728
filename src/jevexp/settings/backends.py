"""The other providers: llama.cpp, judgevet's, a Python factory, replayed answers, made-up ones.

Settings that are mostly an HTTP address stand in `http`.
"""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from jevexp.settings.base import (
    BackendSettings,
    CacheType,
    EnvironmentVariable,
    FrozenSettings,
    Seconds,
)
from jevexp.untrusted.addresses import check_address

FactoryPath = Annotated[
    str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")
]


class LlamaServer(FrozenSettings):
    """Where a llama.cpp server is, or how to start one.

    With `base_url` an existing server is used. Without it a server is started for `gguf`, else for
    the model's own weights; where the model has none here, the server at llama.cpp's default
    address is used. `allow_http` came later: a run directory from before it still resumes.
    """

    base_url: str | None
    gguf: str | None
    key_env: EnvironmentVariable | None
    context: Annotated[int, Field(ge=64)]
    threads: Annotated[int, Field(ge=1)] | None
    slots: Annotated[int, Field(ge=1)]
    cache_type_k: CacheType
    cache_type_v: CacheType
    gpu_layers: Annotated[int, Field(ge=-1)]
    start_timeout_s: Seconds
    allow_http: bool = False

    @model_validator(mode="after")
    def _one_server(self) -> Self:
        if self.base_url is not None and self.gguf:
            raise ValueError("gguf: base_url names a running server; give one of the two")
        if self.base_url is not None:
            check_address(self.base_url, allow_http=self.allow_http)
        return self


class LlamaTemplate(FrozenSettings):
    """How a question becomes a prompt: options for the server's own chat template."""

    kwargs: dict[str, Any]


class LlamaReadout(FrozenSettings):
    """How the distribution is read; `bias` is added to every candidate's logit."""

    bias: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
    extra_probs: Annotated[int, Field(ge=0, le=100)]


class LlamaCppBackend(BackendSettings):
    """Any GGUF model on any llama.cpp server, one next-token distribution a decision."""

    kind: Literal["llama_cpp"]
    server: LlamaServer
    template: LlamaTemplate
    readout: LlamaReadout
    connect_timeout_s: Seconds
    request_timeout_s: Seconds


class TypevetSession(FrozenSettings):
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


class PythonBackend(BackendSettings):
    """A model that `factory` makes; no other field of the settings names code to run.

    `options` are its keyword arguments, plain JSON.
    """

    kind: Literal["python"]
    factory: str
    options: dict[str, Any]

    @model_validator(mode="after")
    def _dotted(self) -> Self:
        module, _, attribute = self.factory.partition(":")
        if not all(part.isidentifier() for part in [*module.split("."), *attribute.split(".")]):
            raise ValueError(
                "factory: expected package.module:callable, such as my_model:make, "
                f"found {self.factory!r}"
            )
        return self


class ReplayBackend(BackendSettings):
    """Answers from an earlier run's directory, or from a JSON Lines file of answers."""

    kind: Literal["replay"]
    run: str | None
    answers: str | None

    costs_nothing: ClassVar[bool] = True

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.run is None and self.answers is None:
            raise ValueError("run: missing; give backend.run=DIR or backend.answers=FILE")
        if self.run is not None and self.answers is not None:
            raise ValueError("answers: backend.run is given as well; give one of the two")
        return self


class FakeBackend(BackendSettings):
    """An offline provider for tests and dry runs; it is told the answers it should give."""

    kind: Literal["fake"]
    mode: Literal["uniform", "script", "noise"]
    script: str | None
    accuracy: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    seed: int
    latency_s: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)]

    @model_validator(mode="after")
    def _script_given(self) -> Self:
        if (self.mode == "script") != (self.script is not None):
            raise ValueError("script: a file goes with mode=script, and only with it")
        return self
