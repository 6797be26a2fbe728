"""A person's own model in this process."""

from typing import Any, Literal, Self

from pydantic import model_validator

from jevexp.settings.base import BackendSettings


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
