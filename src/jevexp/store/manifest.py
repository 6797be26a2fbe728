"""The manifest: what a run was, in one file that tells the truth however the run ended."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from jevexp.core.identity import Fingerprint, IdentityReport

MANIFEST_VERSION = 1


class RunStatus(StrEnum):
    """How far a run is, or how it ended."""

    RUNNING = "running"
    """Under way, or killed before it could say otherwise."""
    COMPLETE = "complete"
    """Every requested task was answered with a valid distribution."""
    INCOMPLETE = "incomplete"
    """Tasks failed, were invalid, or were never attempted."""
    INTERRUPTED = "interrupted"
    """A signal ended it."""
    REFUSED = "refused"
    """Nothing was asked: the provider could not be used as configured; `message` says why."""
    CRASHED = "crashed"
    """An error ended it; `error` names its class."""


class Section(BaseModel):
    """Part of a manifest; a field that a newer version added is kept and not understood."""

    model_config = ConfigDict(frozen=True, extra="allow")


def _is_resolved(fields: dict[str, Any]) -> dict[str, Any]:
    """What every reader looks up in a configuration; the rest is for `Settings` to check."""
    for name, kind in (("dataset", dict), ("tracking", dict), ("outputs", str)):
        if not isinstance(fields.get(name), kind):
            raise ValueError(f"{name} is missing")
    return fields


Resolved = Annotated[dict[str, Any], AfterValidator(_is_resolved)]
# UTC, as a manifest is written; years that every clock and calendar knows.
Time = Annotated[str, Field(pattern=r"^(19[7-9]|2\d\d)\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")]


class Program(Section):
    """Which jevexp an earlier session of a resumed run was, by the name of its run."""

    run: str
    jevexp: str
    git_commit: str | None
    git_dirty: bool | None


class Software(Section):
    """What ran: versions, interpreter, platform, and the state of jevexp's own checkout.

    `earlier` are the sessions whose answers a resumed run took over, oldest first; null where there
    are none, and in runs that a version without this field resumed.
    """

    jevexp: str
    git_commit: str | None
    git_dirty: bool | None
    earlier: list[Program] | None = None
    python: str
    platform: str
    packages: dict[str, str | None]


class Config(Section):
    """The resolved configuration, its SHA-256, and the overrides that a person typed."""

    sha256: str
    overrides: list[str]
    resolved: Resolved


class Pin(Section):
    """Where the tasks are published; null where they are in no repository."""

    source: str | None = None
    commit: str | None = None


class DatasetEntry(Section):
    """The tasks: the pin, the files' hashes, the order-independent hash and the counts."""

    name: str
    dataset_hash: str
    n_tasks: int
    files: list[dict[str, Any]]
    pin: Pin


class HarnessEntry(Section):
    """Which implementation of the protocol ran, and the commit whose protocol that is."""

    name: str
    commit: str | None = None


class BackendEntry(Section):
    """The provider's name, what it said of itself when it was opened, and the proxy on the way."""

    name: str
    description: dict[str, Any] = Field(default_factory=dict)
    proxy: str | None = None

    @property
    def warnings(self) -> list[str]:
        """What a reader has to know of how it was asked, as the description says it."""
        return warnings_of(self.description)


def warnings_of(description: Mapping[str, Any]) -> list[str]:
    """A provider's warnings about how it is asked; none where a description holds none."""
    warnings = description.get("warnings")
    return list(map(str, warnings)) if isinstance(warnings, list) else []


class DeclaredWeights(Section):
    """What is claimed about the weights' file."""

    sha256: str | None


class DeclaredQuantization(Section):
    """What is claimed about the quantization."""

    label: str | None


class DeclaredModel(Section):
    """What the configuration claims about the model."""

    name: str
    weights: DeclaredWeights
    quantization: DeclaredQuantization


class ModelEntry(Section):
    """Which model was requested, what was declared about it, and which models answered."""

    requested: str
    session: str | None
    resolved: list[str]
    declared: DeclaredModel

    @property
    def unexpected_models(self) -> list[str]:
        """The models that answered under another name than the requested one."""
        return [name for name in self.resolved if name != self.requested]


class Counts(Section):
    """Tasks requested (after the limit), attempted, answered, and answered validly.

    Of those that were answered, `truncated` are the ones whose state the service cut.
    """

    requested: int
    attempted: int
    answered: int
    valid: int
    truncated: int = 0

    @property
    def truncated_words(self) -> str | None:
        """How many states were cut, in words; None where none was."""
        if not self.truncated:
            return None
        return f"the service cut the state of {self.truncated} of {self.answered} answered tasks"


class LedgerEntry(Section):
    """The ledger's path, the cap in force, this run's charge and the whole ledger's, in dollars."""

    path: str
    shared: bool
    cap_usd: float
    charged_by_run_usd: float
    charged_usd: float
    reason: str | None


class Session(Section):
    """One earlier sitting of a resumed run: its run, when it began, whose answers it gave."""

    run: str
    started: str
    tasks: list[str]


class Resumed(Section):
    """The run that this one resumed, and what it took over; `path` is where that run was.

    `adopted` are the tasks whose answers were taken over, in the dataset's order, and `recovered`
    those of them that had no record yet when their process was killed. `charged_usd` is what the
    earlier sessions were charged in ledgers of their own, by which this run's cap is lower.
    `sessions` says which of them gave which answer, oldest first.
    """

    run: str
    path: str
    manifest_sha256: str
    checksums_sha256: str | None
    adopted: list[str]
    recovered: list[str]
    charged_usd: float
    sessions: list[Session]


class Manifest(Section):
    """Everything that says what a run was. Times are UTC in ISO 8601."""

    version: int = MANIFEST_VERSION
    run: str
    sweep: str | None
    status: RunStatus
    exit_status: int | None
    stop_reason: str | None
    error: str | None
    message: str | None
    started: Time
    finished: Time | None
    harness: HarnessEntry
    software: Software
    config: Config
    dataset: DatasetEntry
    backend: BackendEntry
    model: ModelEntry
    identity: IdentityReport | None
    fingerprint: Fingerprint | None
    concurrency: int = 1
    counts: Counts
    cost_basis: list[str]
    ledger: LedgerEntry
    resumed: Resumed | None = None

    @property
    def title(self) -> str:
        """Dataset, model and backend, and the concurrency where it is not the benchmark's."""
        return self.titled(self.model.declared.name)

    @property
    def programs(self) -> list[Program]:
        """Every jevexp that gave answers to this run, oldest first, itself last."""
        own = self.software.model_dump(include={"jevexp", "git_commit", "git_dirty"})
        return [*(self.software.earlier or ()), Program(run=self.run, **own)]

    def titled(self, model: str) -> str:
        """The title with other words for the model."""
        backend = f"{self.backend.name}{concurrency_mark(self.concurrency)}"
        return f"{self.dataset.name} · {model} · {backend}"


def concurrency_mark(concurrency: int) -> str:
    """How a run's name ends when several requests were under way at once."""
    return f" · ×{concurrency}" if concurrency > 1 else ""


def differing_overrides(manifests: Sequence[Manifest]) -> list[dict[str, str]]:
    """For each run its overrides that are not the same in all of them, in the order typed."""
    runs = [
        {field: value for field, _, value in (typed.partition("=") for typed in overrides)}
        for overrides in (manifest.config.overrides for manifest in manifests)
    ]
    fields = dict.fromkeys(field for run in runs for field in run)
    varying = [field for field in fields if len({run.get(field) for run in runs}) > 1]
    return [{field: run[field] for field in varying if field in run} for run in runs]
