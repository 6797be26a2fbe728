"""Keeps a run's manifest true while the run goes on."""

import importlib.metadata
import logging
import os
import platform
import subprocess
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jevexp
from jevexp.core.identity import Fingerprint, IdentityReport
from jevexp.core.record import Record
from jevexp.errors import InputError
from jevexp.ledger.base import Ledger
from jevexp.ledger.state import LedgerError
from jevexp.run.planning import Launch, Plan
from jevexp.store.directory import LEDGER, RunDirectory
from jevexp.store.manifest import (
    Config,
    Counts,
    DatasetEntry,
    LedgerEntry,
    Manifest,
    ModelEntry,
    RunStatus,
    Software,
)
from jevexp.untrusted.addresses import named_proxy

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended: its status, the command's exit status, the stop rule, the error."""

    status: RunStatus
    exit_status: int
    stop_reason: str | None = None
    error: BaseException | None = None


class Journal:
    """What is known about a run so far.

    The first manifest says "running"; a run that is killed leaves that one behind, which is the
    truth about it.
    """

    def __init__(self, directory: RunDirectory, plan: Plan, launch: Launch) -> None:
        settings, dataset, adoption = plan.settings, plan.dataset, plan.adoption
        ledger = str(launch.ledger(settings.caps))
        self.directory = directory
        self._settings = settings
        self._sweep = launch.sweep.name if launch.sweep else None
        self._harness = plan.harness.describe()
        self._resumed = adoption.entry if adoption else None
        self._started = _now()
        self._software = describe_software().model_copy(
            update={"earlier": list(adoption.programs) if adoption else None}
        )
        self._config = Config(
            sha256=settings.config_hash,
            overrides=list(launch.overrides),
            resolved=settings.resolved(),
        )
        self._dataset = DatasetEntry(
            name=dataset.name,
            dataset_hash=dataset.dataset_hash,
            n_tasks=len(dataset.tasks),
            files=[asdict(file) for file in dataset.files],
            pin=dataset.pin,
        )
        self.ledger = LedgerEntry(
            path=ledger,
            shared=ledger != str(directory.path / LEDGER),
            cap_usd=settings.caps.cap_usd,
            charged_by_run_usd=0.0,
            charged_usd=0.0,
            reason=settings.caps.reason,
        )
        self._provider: dict[str, Any] = {}
        self._identity: IdentityReport | None = None
        self._fingerprint: Fingerprint | None = None
        self._resolved: set[str] = set()
        self._cost_basis: set[str] = set()
        self.counts = Counts(requested=len(plan.tasks), attempted=0, answered=0, valid=0)

    def opened(
        self, description: dict[str, Any], identity: IdentityReport, fingerprint: Fingerprint
    ) -> None:
        """The provider is open, has described itself, and was held against what is declared."""
        self._provider = description
        self._identity = identity
        self._fingerprint = fingerprint
        self.save()

    def record(self, record: Record) -> None:
        """One more task was attempted."""
        counts = self.counts
        self.counts = Counts(
            requested=counts.requested,
            attempted=counts.attempted + 1,
            answered=counts.answered + record.ok,
            valid=counts.valid + (record.ok and record.valid),
            truncated=counts.truncated + record.truncated,
        )
        self._cost_basis.add(record.cost_basis)
        # Of a failed attempt nobody knows who would have answered.
        if record.ok and record.model:
            self._resolved.add(record.model)

    def charged(self, ledger: Ledger) -> None:
        """The last request is done: note what the ledger says."""
        charged_here_usd = ledger.charged_here_usd
        try:
            charged_usd = ledger.charged_usd
        except LedgerError as error:
            # Not worth more than the reason why the run ends; its own charge is known all the same.
            log.warning("the ledger could not be read at the end: %s", error)
            charged_usd = charged_here_usd
        charges = {"charged_by_run_usd": charged_here_usd, "charged_usd": charged_usd}
        self.ledger = self.ledger.model_copy(update={"cap_usd": ledger.cap_usd, **charges})

    def save(self, ending: Ending | None = None) -> Manifest:
        """Write what is known; with `ending` for the last time."""
        error = ending.error if ending else None
        manifest = Manifest(
            run=self.directory.path.name,
            sweep=self._sweep,
            status=ending.status if ending else RunStatus.RUNNING,
            exit_status=ending.exit_status if ending else None,
            stop_reason=ending.stop_reason if ending else None,
            error=type(error).__name__ if error else None,
            message=_safe_words(error),
            started=self._started,
            finished=_now() if ending else None,
            harness=self._harness,
            software=self._software,
            config=self._config,
            dataset=self._dataset,
            backend={
                "name": self._settings.backend.name,
                "description": self._provider,
                "proxy": named_proxy(self._provider.get("base_url")),
            },
            model=ModelEntry(
                requested=self._settings.model.alias,
                session=self._provider.get("model"),
                resolved=sorted(self._resolved),
                declared=self._settings.model.model_dump(mode="json"),
            ),
            identity=self._identity,
            fingerprint=self._fingerprint,
            concurrency=self._settings.runner.concurrency,
            counts=self.counts,
            cost_basis=sorted(self._cost_basis),
            ledger=self.ledger,
            resumed=self._resumed,
        )
        self.directory.write_manifest(manifest)
        return manifest


def _safe_words(error: BaseException | None) -> str | None:
    """Our own messages, and the operating system's; others may hold a secret."""
    if isinstance(error, InputError):
        return str(error)
    return error.strerror if isinstance(error, OSError) and error.errno else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# What a result can depend on.
PACKAGES = (
    "gguf",
    "httpx",
    "hydra-core",
    "jevbench",
    "judgevet",
    "mlflow",
    "omegaconf",
    "pydantic",
    "xllamacpp",
)


def describe_software() -> Software:
    """The versions that a result can depend on; null where not installed or not known."""
    commit = _git("rev-parse", "HEAD")
    changes = _git("status", "--porcelain") if commit else None
    packages: dict[str, str | None] = dict.fromkeys(PACKAGES)
    for name in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            packages[name] = importlib.metadata.version(name)
    return Software(
        jevexp=jevexp.__version__,
        git_commit=commit,
        git_dirty=None if changes is None else bool(changes),
        python=platform.python_version(),
        platform=platform.platform(),
        packages=packages,
    )


def _git(*arguments: str) -> str | None:
    """The output of git in jevexp's checkout; None when it was not installed from one."""
    source = Path(jevexp.__file__).parents[1]
    if not (source.parent / ".git").exists():
        return None
    # Inside of a hook they name the repository that the hook is of.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        completed = subprocess.run(
            ["git", "-C", str(source), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return completed.stdout.strip()
