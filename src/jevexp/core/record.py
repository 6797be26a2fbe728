"""What a run comes to: a record per task (`results.jsonl`), and their `summary.json`."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, model_validator

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

    @property
    def truncated(self) -> bool:
        """Whether the service answered and says that it did not read all of the state."""
        return self.ok and (self.runtime or {}).get("truncated") is True

    def line(self) -> dict[str, Any]:
        """The record as it is written: `prepare_s` only where something was prepared."""
        fields = self.model_dump(mode="json")
        if self.prepare_s is None:
            del fields["prepare_s"]
        return fields


class _Part(BaseModel):
    """Keeps what another version or another harness has added."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False)


class CalibrationBin(_Part):
    """Answers whose top probability lies between `lo` and `hi`; null where there are none."""

    lo: float
    hi: float
    n: int
    mean_confidence: float | None
    accuracy: float | None


class Calibration(_Part):
    """Expected calibration error of the top label over `n` answers, and its bins."""

    ece: float
    n: int
    bins: list[CalibrationBin]


class Latency(_Part):
    """Seconds of wall clock over `n` requests: median and 95th percentile."""

    n: int
    p50_s: float | None
    p95_s: float | None


class GroupSummary(_Part):
    """The numbers of one group of tasks; a mean over nothing is null, and never 0.

    `accuracy`, `coverage`, `schema_validity`, `schema_validity_strict` and `operational_success`
    are shares; a failed attempt counts as wrong, a task that was not attempted does not count.
    `brier_mean` is between 0 and 2, `ordinal_mae` in levels.
    """

    n_planned: int
    n_attempted: int
    n_scorable: int
    n_valid: int
    n_correct: int
    accuracy: float | None
    coverage: float | None
    schema_validity: float | None
    schema_validity_strict: float | None
    n_renormalized: int
    operational_success: float | None
    calibration_n: int
    brier_mean: float | None
    ece: Calibration | None
    ordinal_mae: float | None
    latency: Latency
    latency_failures: Latency
    price_per_1000_decisions_usd: float | None
    cost_basis: list[str]

    def number(self, name: str) -> float | None:
        """A number by the name that tables, pages and trackers have for it.

        The name of a field, `ece`, or a latency's `p50_s` and `p95_s`.

        Raises AttributeError: the summary has no such number.
        """
        if name == "ece":
            return self.ece.ece if self.ece else None
        if name in ("p50_s", "p95_s"):
            return self.latency.p50_s if name == "p50_s" else self.latency.p95_s
        value: float | None = getattr(self, name)
        return value


class ParaphraseConsistency(_Part):
    """How often both wordings of a pair get the same answer, and how often both are right."""

    pairs: NonNegativeInt
    both_valid: NonNegativeInt
    agree: NonNegativeInt
    agreement: float | None
    both_correct_rate_all_pairs: float | None

    @model_validator(mode="after")
    def _parts_of_each_other(self) -> Self:
        if not self.agree <= self.both_valid <= self.pairs:
            raise ValueError("more pairs agree than there are")
        return self


class Summary(GroupSummary):
    """One run: its numbers over all tasks, by family and by split.

    `ledger_charged_usd` is what the whole ledger was charged, in US dollars.
    """

    version: str
    macro_accuracy: float | None
    per_family: dict[str, GroupSummary]
    complete: bool
    paraphrase_consistency: ParaphraseConsistency
    model_identities: list[str]
    probability_sources: list[str]
    splits: dict[str, GroupSummary]
    ledger_charged_usd: float | None

    def plain(self) -> dict[str, Any]:
        """The summary as plain JSON, in the order of its file."""
        return self.model_dump(mode="json")
