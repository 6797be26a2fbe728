"""Answers that were given before."""

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from jevexp.settings.base import BackendSettings


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
