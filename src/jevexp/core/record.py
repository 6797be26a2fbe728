"""One line of results.jsonl: what one task came to."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

YEAR_10000 = 253402300800
# Seconds, dollars, levels: sums and squares of as many as fit on a disk stay finite.
Quantity = Annotated[float, Field(ge=0, le=1e15)]
Share = Annotated[float, Field(ge=0, le=1)]


class Record(BaseModel):
    """The benchmark's per-task record, field for field; see the reference page on artifacts.

    `latency_s` is in seconds of wall clock around the provider call, the `_usd` fields are in US
    dollars, `ordinal_ev` is the expected level of a score task, `ts` is seconds since the epoch.
    `correct` is null where the task has no truth, but false for failed attempts and invalid
    distributions also there; `probs` is null where no valid distribution came back, while
    `probs_as_returned` keeps what did.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    task_id: str
    family: str
    split: str
    group: str | None
    ts: Annotated[float, Field(ge=0, lt=YEAR_10000)]
    status: Literal["ok", "failed"]
    ok: bool
    valid: bool
    correct: bool | None
    predicted: str | None
    ordinal_ev: Quantity | None
    probs: dict[str, Share] | None
    probs_as_returned: dict[str, Any] | None
    strict_valid: bool
    renormalized: bool
    probs_source: str
    model: str
    error: str | None
    schema_error: str | None
    status_code: int | None
    latency_s: Quantity
    usage: dict[str, Any]
    cost_usd: Quantity | None
    cost_basis: str
    reserved_usd: Quantity
    charged_usd: Quantity
    raw_sha256: str
    runtime: dict[str, Any] | None
    prepare_s: Quantity | None = None

    def line(self) -> dict[str, Any]:
        """The record as it is written: `prepare_s` only where something was prepared."""
        fields = self.model_dump(mode="json")
        if self.prepare_s is None:
            del fields["prepare_s"]
        return fields
