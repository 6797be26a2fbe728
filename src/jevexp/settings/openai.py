"""What both providers on OpenAI-compatible servers share."""

from collections.abc import Iterable
from typing import Any, ClassVar, Self

from pydantic import model_validator

from jevexp.settings.http import HttpBackend


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
