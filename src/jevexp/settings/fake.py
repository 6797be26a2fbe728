"""The offline provider."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from jevexp.settings.base import BackendSettings


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
