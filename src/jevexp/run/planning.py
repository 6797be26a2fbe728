"""Plans a run, and checks everything about it that needs no provider."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jevexp.backends.protocol import Backend, check_concurrency, make_backend
from jevexp.core.task import Task
from jevexp.datasets import LoadedDataset, load_dataset
from jevexp.harness.harness import Harness, make_harness
from jevexp.ledger.location import LedgerFile, LedgerLocation, ledger_database
from jevexp.settings import Caps, Settings
from jevexp.store.directory import LEDGER
from jevexp.store.records import Adoption
from jevexp.tracking import make_trackers
from jevexp.untrusted.console import SafeConsole


@dataclass(frozen=True, slots=True)
class Plan:
    """A run that can go ahead as far as anyone can tell without asking a provider.

    `backend` is the provider, made once and not opened yet. `adoption` is what is taken over from
    an earlier run, `charged_before_usd` what earlier sittings were charged in ledgers of their own,
    in US dollars.
    """

    settings: Settings
    dataset: LoadedDataset
    tasks: Sequence[Task]
    harness: Harness
    backend: Backend
    adoption: Adoption | None = None
    charged_before_usd: float = 0.0

    @property
    def to_ask(self) -> Sequence[Task]:
        """The tasks without those whose answers are taken over from an earlier run."""
        if self.adoption is None:
            return self.tasks
        adopted = set(self.adoption.entry.adopted)
        return tuple(task for task in self.tasks if task.id not in adopted)

    @property
    def cap_usd(self) -> float:
        """The configured cap without what earlier sessions were charged, in US dollars."""
        return max(0.0, self.settings.caps.cap_usd - self.charged_before_usd)


@dataclass(frozen=True, slots=True)
class Launch:
    """Where a run goes: its directory, and for a run of a sweep the sweep's."""

    directory: Path
    sweep: Path | None = None
    overrides: tuple[str, ...] = ()

    def ledger(self, caps: Caps) -> LedgerLocation:
        """Where the ledger is: as configured, else inside the sweep or the run."""
        return _configured_ledger(caps) or LedgerFile(
            (self.sweep or self.directory) / LEDGER,
            on_network=caps.ledger_on_network,
            shared=self.sweep is not None,
        )


def plan(settings: Settings) -> Plan:
    """Check everything that needs no provider; pinned files that are not here are downloaded.

    Raises InputError: the run cannot succeed as configured.
    """
    dataset = load_dataset(settings.dataset, show=SafeConsole(stderr=True))
    tasks = dataset.tasks[: settings.caps.limit]
    backend = make_backend(settings.backend, settings.model, tasks)
    check_concurrency(backend, settings.runner.concurrency)
    for tracker in make_trackers(settings.tracking, Path(settings.outputs)).values():
        tracker.check_own()
    check_ledger(settings)
    harness = make_harness(settings.harness, concurrency=settings.runner.concurrency)
    harness.check(tasks)
    return Plan(settings, dataset, tasks, harness, backend)


def check_ledger(settings: Settings) -> tuple[float, float]:
    """The cap that will be in force and what is charged already, in US dollars; only looks.

    Raises InputError: the configured ledger exists and cannot be used.
    """
    caps = settings.caps
    if location := _configured_ledger(caps):
        location.check()
        if location.exists:
            with location.open(caps.cap_usd, read_only=True) as ledger:
                return ledger.cap_usd, ledger.charged_usd
    return caps.cap_usd, 0.0


def _configured_ledger(caps: Caps) -> LedgerLocation | None:
    if caps.ledger_url is not None:
        return ledger_database(caps.ledger_url, caps.ledger_password_env)
    if caps.ledger is not None:
        return LedgerFile(Path(caps.ledger).absolute(), on_network=caps.ledger_on_network)
    return None
