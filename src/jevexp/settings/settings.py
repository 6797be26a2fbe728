"""One run, completely described."""

import hashlib
from typing import Annotated, Any, Literal

from pydantic import Field

from jevexp.domain.json import dumps
from jevexp.settings.base import Model
from jevexp.settings.dataset import Dataset
from jevexp.settings.fake import FakeBackend
from jevexp.settings.judgevet import JudgevetBackend
from jevexp.settings.llama_cpp import LlamaCppBackend
from jevexp.settings.model import ModelIdentity
from jevexp.settings.run import Caps, Harness, Pricing
from jevexp.settings.tracking import Tracking

AnyBackend = FakeBackend | LlamaCppBackend | JudgevetBackend
Backend = Annotated[AnyBackend, Field(discriminator="kind")]


class Settings(Model):
    """One run, completely described."""

    dataset: Dataset
    backend: Backend
    model: ModelIdentity
    caps: Caps
    pricing: Pricing
    harness: Harness
    tracking: Tracking
    identity: Literal["strict", "record"]
    outputs: Annotated[str, Field(min_length=1)]

    def resolved(self) -> dict[str, Any]:
        """The configuration as plain JSON, every default filled in."""
        return self.model_dump(mode="json")

    @property
    def config_hash(self) -> str:
        """SHA-256 of the resolved configuration in canonical JSON."""
        return hashlib.sha256(dumps(self.resolved(), sort_keys=True).encode()).hexdigest()
