"""Who is asked, and what is claimed to be behind the name."""

from typing import Annotated, Any

from pydantic import Field, model_validator

from jevexp.core.ftype import claimed_ftype
from jevexp.settings.base import CacheType, FrozenSettings, Name, Sha256


class WeightsPackage(FrozenSettings):
    """A Python distribution that ships the weights, and how a person installs it."""

    name: str
    install: str


class WeightFile(FrozenSettings):
    """One file of weights, as claimed. Null means: not claimed."""

    file: str | None = None
    path: str | None = None
    sha256: Sha256 | None = None
    bytes: Annotated[int, Field(gt=0)] | None = None
    repository: str | None = None
    revision: str | None = None


class Weights(WeightFile):
    """The model's main weights; `package` names a distribution that ships them."""

    package: WeightsPackage | None = None


class Quantization(FrozenSettings):
    """The claimed quantization: its usual name, the header's file type, how many tensors of each.

    `ftype` takes every spelling, and is kept as the name: "Q4_K_M" for 15 and "Q4_K - Medium".
    """

    label: str | None = None
    ftype: str | None = None
    tensor_types: dict[str, Annotated[int, Field(gt=0)]] | None = None
    note: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _ftype_by_name(cls, fields: Any) -> Any:
        spelling = fields.get("ftype") if isinstance(fields, dict) else None
        if not isinstance(spelling, str | int) or isinstance(spelling, bool):
            return fields
        try:
            return fields | {"ftype": claimed_ftype(spelling)}
        except ValueError as error:
            raise ValueError(f"ftype: {error}") from error


class ChatTemplate(FrozenSettings):
    """The claimed chat template: SHA-256 of its text, and the file that the text is kept in."""

    file: str | None = None
    sha256: Sha256 | None = None


class ModelIdentity(FrozenSettings):
    """Who is asked: the alias that the provider is sent, and what is claimed to be behind it.

    `files` are further files such as a projector. `context` is one slot's, in tokens.
    """

    name: Name
    alias: Annotated[str, Field(min_length=1)]
    weights: Weights = Weights()
    quantization: Quantization = Quantization()
    chat_template: ChatTemplate = ChatTemplate()
    files: dict[str, WeightFile] = Field(default_factory=dict)
    context: Annotated[int, Field(ge=64)] | None = None
    cache_type_k: CacheType | None = None
    cache_type_v: CacheType | None = None
