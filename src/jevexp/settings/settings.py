"""One run, completely described."""

import hashlib
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from jevexp.core.json import dumps
from jevexp.settings.base import Model
from jevexp.settings.dataset import Dataset
from jevexp.settings.model import ModelIdentity
from jevexp.settings.providers import AnyBackend
from jevexp.settings.run import Caps, Harness, Pricing, Runner
from jevexp.settings.tracking import Tracking


class Settings(Model):
    """One run, completely described."""

    dataset: Dataset
    backend: AnyBackend
    model: ModelIdentity
    caps: Caps
    pricing: Pricing
    harness: Harness
    runner: Runner
    tracking: Tracking
    identity: Literal["strict", "record"]
    outputs: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _no_price_for_nothing(self) -> Self:
        if self.backend.costs_nothing and (self.pricing.input_per_m or self.pricing.output_per_m):
            raise ValueError(
                f"pricing: a {self.backend.kind} costs nothing; use pricing=unknown or "
                "pricing=local"
            )
        return self

    @model_validator(mode="after")
    def _file_for_the_pinned_harness(self) -> Self:
        if self.harness.name == "upstream" and self.caps.ledger_url is not None:
            raise ValueError(
                "caps.ledger_url: the pinned harness keeps its ledger in a file; set caps.ledger, "
                "or harness=native"
            )
        return self

    def resolved(self) -> dict[str, Any]:
        """The configuration as plain JSON, every default filled in."""
        return self.model_dump(mode="json")

    @property
    def config_hash(self) -> str:
        """SHA-256 of the resolved configuration in canonical JSON."""
        return hashlib.sha256(dumps(self.resolved(), sort_keys=True).encode()).hexdigest()
