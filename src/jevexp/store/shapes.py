"""What has to be there inside of a manifest and a summary before anybody looks at it.

A run directory may come from a stranger, or from another version. What a reader needs is checked
once, where the file is read; whatever else is there is kept.
"""

from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator


class _Shape(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


class _Named(_Shape):
    name: str


class _Weights(_Shape):
    sha256: str | None


class _Quantization(_Shape):
    label: str | None


class _Declared(_Named):
    weights: _Weights
    quantization: _Quantization


class _Resolved(_Shape):
    dataset: dict[str, Any]
    tracking: dict[str, Any]
    outputs: str


class _Pin(_Shape):
    source: str | None = None
    commit: str | None = None


class _Ece(_Shape):
    ece: float


class _Latency(_Shape):
    p50_s: float | None
    p95_s: float | None


class _Numbers(_Shape):
    n_planned: int
    n_valid: int
    accuracy: float | None
    brier_mean: float | None
    ece: _Ece | None
    ordinal_mae: float | None
    latency: _Latency


class _Paraphrases(_Shape):
    pairs: Annotated[int, Field(ge=0)]
    both_valid: Annotated[int, Field(ge=0)]
    agree: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _parts_of_each_other(self) -> Self:
        if not self.agree <= self.both_valid <= self.pairs:
            raise ValueError("more pairs agree than there are")
        return self


class _Summary(_Numbers):
    n_correct: int
    n_scorable: int
    macro_accuracy: float | None
    coverage: float | None
    schema_validity: float | None
    per_family: dict[str, _Numbers]
    paraphrase_consistency: _Paraphrases


def _has(shape: type[BaseModel]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def check(fields: dict[str, Any]) -> dict[str, Any]:
        shape.model_validate(fields)
        return fields

    return check


Named = Annotated[dict[str, Any], AfterValidator(_has(_Named))]
Declared = Annotated[dict[str, Any], AfterValidator(_has(_Declared))]
Resolved = Annotated[dict[str, Any], AfterValidator(_has(_Resolved))]
Pin = Annotated[dict[str, Any], AfterValidator(_has(_Pin))]
# UTC, as a manifest is written; years that every clock and calendar knows.
Time = Annotated[str, Field(pattern=r"^(19[7-9]|2\d\d)\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")]


def check_summary(fields: Any) -> dict[str, Any]:
    """A summary, unchanged.

    Raises:
        ValueError: it is no object, or lacks what every summary has.
    """
    _Summary.model_validate(fields)
    return dict(fields)
