"""The manifest: what a run was, in one file that tells the truth however the run ended."""

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from jevexp.core.identity import Fingerprint, IdentityReport
from jevexp.store.shapes import Declared, Named, Pin, Resolved, Time

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


class Software(Section):
    """What ran: versions, interpreter, platform, and the state of jevexp's own checkout."""

    jevexp: str
    git_commit: str | None
    git_dirty: bool | None
    python: str
    platform: str
    packages: dict[str, str | None]


class Config(Section):
    """The resolved configuration, its SHA-256, and the overrides that a person typed."""

    sha256: str
    overrides: list[str]
    resolved: Resolved


class DatasetEntry(Section):
    """The tasks: the pin, the files' hashes, the order-independent hash and the counts."""

    name: str
    dataset_hash: str
    n_tasks: int
    files: list[dict[str, Any]]
    pin: Pin


class ModelEntry(Section):
    """Which model was requested, what was declared about it, and which models answered."""

    requested: str
    session: str | None
    resolved: list[str]
    declared: Declared

    @property
    def strangers(self) -> list[str]:
        """The models that answered under another name than the requested one."""
        return [name for name in self.resolved if name != self.requested]


class Counts(Section):
    """Tasks requested (after the limit), attempted, answered, and answered validly."""

    requested: int
    attempted: int
    answered: int
    valid: int


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
    harness: Named
    software: Software
    config: Config
    dataset: DatasetEntry
    backend: Named
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
        """What identifies a run to a person; lists show little more of it.

        Dataset, model and backend, and the concurrency where it is not the benchmark's.
        """
        return self.titled(str(self.model.declared["name"]))

    def titled(self, model: str) -> str:
        """The title with other words for the model."""
        return f"{self.dataset.name} · {model} · {self.backend['name']}{at_once(self.concurrency)}"


def at_once(concurrency: int) -> str:
    """How a run's name ends when several requests were under way at once."""
    return f" · ×{concurrency}" if concurrency > 1 else ""
