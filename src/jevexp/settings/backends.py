"""The settings of every provider, those with an HTTP address first."""

from collections.abc import Iterable
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

# Where a service takes decisions: names with a slash before each, none of which leads upwards.
ServicePath = Annotated[
    str, Field(pattern=r"^(/[A-Za-z0-9_~@:+%-][A-Za-z0-9._~@:+%-]*)+$", max_length=500)
]
JsonPointer = Annotated[str, Field(pattern=r"^(/([^~/]|~[01])+)+$")]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]
Bias = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]


class ServerCommand(FrozenSettings):
    """How a server is started for the run; `{port}` in `command` becomes a free port.

    `api_key_env` names the environment variable from which the server reads the key that it asks
    for; every run puts a new key there. Runs from before a field with a default do not have it.
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
        if self.base_url is not None:
            check_address(self.base_url, allow_http=self.allow_http)
        elif self.key_env is not None or self.header_env:
            # It would write into the run's directory, as a server's log is part of a run.
            raise ValueError(
                "key_env: a server that is started here is asked without key and headers; set "
                "key_env=null and header_env={}"
            )
        return self

    @property
    def address(self) -> str | None:
        """Where the service is, without what is added to it; None where it is started here."""
        return self.base_url


class DecisionService(HttpBackend):
    """Base of services that take a decision at `path` below `base_url`."""

    path: ServicePath

    @property
    def address(self) -> str | None:
        """The base address without what it has of the path: all of it, or its beginning."""
        if self.base_url is None:
            return None
        base, parts = self.base_url.rstrip("/"), self.path.split("/")
        beginnings = ("/".join(parts[:count]) for count in range(len(parts), 1, -1))
        return base.removesuffix(next(filter(base.endswith, beginnings), ""))


class SystemOneBackend(DecisionService):
    """A service that speaks the System One wire: TypeSafe's own, or any compatible server.

    `envelope` is a JSON pointer (RFC 6901) to the answer inside of a body; null: it is the body.
    Runs from before `path` and `envelope` do not have them.
    """

    kind: Literal["systemone"]
    path: ServicePath = "/v1/systemone"
    envelope: JsonPointer | None = None


class DecisionsBackend(DecisionService):
    """A service that speaks OpenAI's Decisions API."""

    kind: Literal["decisions"]


class OpenAIBackend(HttpBackend):
    """Base of these providers' settings; `/v1/…` is added to `base_url`.

    `options` become fields of every request for a decision; the fields in `remove` are left out.
    """

    options: dict[str, Any]
    remove: tuple[str, ...]

    # What the answer could not be read without.
    reserved: ClassVar[frozenset[str]] = frozenset({"model", "messages", "prompt", "stream", "n"})

    @model_validator(mode="after")
    def _leaves_the_rest_alone(self) -> Self:
        if self.base_url is not None and self.base_url.rstrip("/").endswith("/v1"):
            raise ValueError("base_url: ends in /v1, which is added; leave it out")
        changes: dict[str, Iterable[str]] = {"options": self.options, "remove": self.remove}
        for field, names in changes.items():
            if taken := sorted(self.reserved & set(names)):
                raise ValueError(f"{field}: {taken[0]} is set here; leave it out")
        return self


class OpenAIChatBackend(OpenAIBackend):
    """Verbalized probabilities; an answer is at most `max_tokens` long."""

    kind: Literal["openai_chat"]
    max_tokens: Annotated[int, Field(ge=1)]


class TemplateOptions(FrozenSettings):
    """Options for the server's own chat template, which makes a prompt of a question."""

    kwargs: dict[str, Any]


class LogprobsReadout(FrozenSettings):
    """How the distribution is read.

    `bias` is added to every candidate's logit where the server's probabilities know of it;
    `top_logprobs` is how many tokens the server is asked to list, where it agrees to so many.
    """

    bias: Bias
    top_logprobs: Annotated[int, Field(ge=2, le=1000)]


class OpenAILogprobsBackend(OpenAIBackend):
    """One next-token distribution a decision, as far as the server shows it.

    `route` null: completions where the server renders its chat template, else chat.
    """

    kind: Literal["openai_logprobs"]
    route: Literal["chat", "completions"] | None
    template: TemplateOptions
    readout: LogprobsReadout

    reserved: ClassVar[frozenset[str]] = OpenAIBackend.reserved | {
        "logprobs",
        "top_logprobs",
        "logit_bias",
        "temperature",
    }


class LlamaServer(FrozenSettings):
    """Where a llama.cpp server is, or how to start one.

    With `base_url` an existing server is used. Without it a server is started for `gguf`, else for
    the model's own weights; where the model has none here, the server at llama.cpp's default
    address is used. Runs from before `allow_http` do not have it.
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
        if self.base_url is not None:
            if self.gguf:
                raise ValueError("gguf: base_url names a running server; give one of the two")
            check_address(self.base_url, allow_http=self.allow_http)
        return self


class LlamaReadout(FrozenSettings):
    """How the distribution is read; on route `tokens`, `bias` is added to the candidates' logits.

    Route `native` has a decision model say it at `/v1/systemone`; `auto` takes it where the server
    has one. Runs from before `route` do not have it.
    """

    bias: Bias
    extra_probs: Annotated[int, Field(ge=0, le=100)]
    route: Literal["auto", "native", "tokens"] = "auto"


class LlamaCppBackend(BackendSettings):
    """Any GGUF model on any llama.cpp server: a decision model's own answer, else a readout.

    With `isolation` each, the server forgets before each task on the native route. Runs from before
    it do not have it.
    """

    kind: Literal["llama_cpp"]
    server: LlamaServer
    template: TemplateOptions
    readout: LlamaReadout
    isolation: Literal["each", "none"] = "each"
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
    factory: str | None

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
        if self.factory is not None:
            _check_factory(self.factory)
        if self.base_url is not None:
            check_address(self.base_url, allow_http=self.allow_http)
        elif self.has_address:
            raise ValueError("base_url: missing; set backend.base_url=URL")
        return self


class PythonBackend(BackendSettings):
    """A model that `factory`, which names code to run, makes of `options`.

    `options` are its keyword arguments, plain JSON.
    """

    kind: Literal["python"]
    factory: str
    options: dict[str, Any]

    @model_validator(mode="after")
    def _dotted(self) -> Self:
        _check_factory(self.factory)
        return self


def _check_factory(factory: str) -> None:
    module, _, attribute = factory.partition(":")
    if not all(part.isidentifier() for part in [*module.split("."), *attribute.split(".")]):
        raise ValueError(
            f"factory: expected package.module:callable, such as my_model:make, found {factory!r}"
        )


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
