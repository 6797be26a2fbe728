"""Any GGUF model on any llama.cpp server."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from jevexp.settings.base import (
    BackendSettings,
    CacheType,
    EnvironmentVariable,
    Model,
    Seconds,
)
from jevexp.untrusted.addresses import check_address


class LlamaServer(Model):
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


class LlamaTemplate(Model):
    """How a question becomes a prompt: options for the server's own chat template."""

    kwargs: dict[str, Any]


class LlamaReadout(Model):
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
