"""Which tasks are put to the model."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from jevexp.settings.base import Model, Name, Sha256


class PinnedFile(Model):
    """One task file at its pin: `path` inside the repository, and what its bytes must be."""

    path: str
    sha256: Sha256
    bytes: Annotated[int, Field(gt=0)]
    tasks: Annotated[int, Field(gt=0)]


class Dataset(Model):
    """Which tasks are put to the model. Exactly one source: pinned files, shipped ones, a path."""

    name: Name
    source: Literal["pinned", "shipped", "local"]
    title: str | None = None
    licence: str | None = None
    repository: str | None = None
    commit: str | None = None
    base_url: str | None = None
    files: tuple[PinnedFile, ...] = ()
    dataset_hash: Sha256 | None = None
    path: str | None = None
    sha256: Sha256 | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.source == "local" and not self.path:
            raise ValueError("path: missing; give dataset.path=FILE, a JSON Lines file of tasks")
        if self.source != "local" and self.sha256:
            raise ValueError("sha256: only dataset=local takes one; a pin has its own")
        return self
