"""One run from top to bottom: plan, claim a directory, ask, prove, track."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from jevexp.backends.factory import make_backend
from jevexp.backends.protocol import check_concurrency
from jevexp.datasets import LoadedDataset, load_dataset
from jevexp.domain.record import Record
from jevexp.domain.task import Task
from jevexp.errors import InputError
from jevexp.evidence import Ending, Journal, Manifest, RunDirectory, RunStatus
from jevexp.evidence.adoption import Adoption
from jevexp.evidence.directory import LEDGER, LOG
from jevexp.evidence.files import sync_directory
from jevexp.evidence.manifest import FingerprintEntry
from jevexp.evidence.runlog import run_log
from jevexp.harness import (
    FilePlace,
    Harness,
    Ledger,
    LedgerError,
    Place,
    RunOutcome,
    SessionModel,
    Tariff,
    database_place,
    make_harness,
)
from jevexp.harness.interrupts import Interrupted, Interrupts
from jevexp.identity import (
    Fingerprint,
    IdentityReport,
    fingerprint,
    observe,
    reconcile,
)
from jevexp.settings import Caps, Settings
from jevexp.tracking import make_tracker
from jevexp.untrusted.console import SafeConsole

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Plan:
    """A run that can go ahead as far as anyone can tell without asking a provider.

    `adoption` is what it takes over from an earlier run, `charged_before_usd` what earlier sittings
    were charged in ledgers of their own, in US dollars.
    """

    settings: Settings
    dataset: LoadedDataset
    tasks: Sequence[Task]
    harness: Harness
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

    def ledger(self, caps: Caps) -> Place:
        """Where the ledger is: as configured, else inside the sweep or the run."""
        return _configured_ledger(caps) or FilePlace(
            (self.sweep or self.directory) / LEDGER,
            on_network=caps.ledger_on_network,
            shared=self.sweep is not None,
        )


class Observer(Protocol):
    """Somebody who watches a run."""

    def started(self, plan: Plan) -> None:
        """The provider is open; requests follow."""

    def recorded(self, record: Record) -> None:
        """One task is done, and durable."""

    def stopping(self) -> None:
        """The run ends after the task in flight; called inside a signal handler."""

    def finished(self) -> None:
        """No more requests follow."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended, as its directory says it.

    `signal` is one that arrived, also when it came too late to stop the run. `tracked` is false
    where the tracker never heard of it: a refused run, or somebody who did not want to wait.
    """

    directory: RunDirectory
    manifest: Manifest
    summary: dict[str, Any]
    signal: Interrupted | None = None
    tracked: bool = False


def plan(settings: Settings) -> Plan:
    """Check everything that needs no provider; pinned files that are not here are downloaded.

    Raises:
        InputError: the run cannot succeed as configured.
    """
    dataset = load_dataset(settings.dataset, show=SafeConsole(stderr=True))
    tasks = dataset.tasks[: settings.caps.limit]
    backend = make_backend(settings.backend, settings.model, tasks)
    check_concurrency(backend, settings.runner.concurrency)
    make_tracker(settings.tracking, Path(settings.outputs))
    check_ledger(settings)
    harness = make_harness(settings.harness, concurrency=settings.runner.concurrency)
    harness.check(tasks)
    return Plan(settings, dataset, tasks, harness)


@dataclass(frozen=True, slots=True)
class Identification:
    """Who answers, held against who was declared, and the hash of what is measured."""

    report: IdentityReport
    fingerprint: Fingerprint


def identify(settings: Settings, description: Mapping[str, Any]) -> Identification:
    """Identify an open provider by its description and, where it is here, its weights' file.

    Raises:
        InputError: the file that the provider was started with cannot be read.
    """
    started_with = description.get("gguf")
    observed = observe(
        description,
        weights=Path(started_with) if started_with else None,
        show=SafeConsole(stderr=True),
    )
    report = reconcile(settings.model, observed)
    return Identification(report, fingerprint(description, report, settings.runner.concurrency))


def check_ledger(settings: Settings) -> tuple[float, float]:
    """The cap that will be in force and what is charged already, in US dollars; only looks.

    Raises:
        InputError: the configured ledger exists and cannot be used.
    """
    caps = settings.caps
    place = _configured_ledger(caps)
    if place is None:
        return caps.cap_usd, 0.0
    place.check()
    if not place.exists:
        return caps.cap_usd, 0.0
    with place.open(caps.cap_usd, read_only=True) as ledger:
        return ledger.cap_usd, ledger.charged_usd


def _configured_ledger(caps: Caps) -> Place | None:
    if caps.ledger_url is not None:
        return database_place(caps.ledger_url, caps.ledger_password_env)
    if caps.ledger is not None:
        return FilePlace(Path(caps.ledger).absolute(), on_network=caps.ledger_on_network)
    return None


def run(
    plan: Plan,
    launch: Launch,
    observer: Observer,
    track: Callable[[RunDirectory, Sequence[Task]], None],
) -> Outcome:
    """Run a plan and leave its evidence in the launch's directory.

    Whatever happens after the directory is claimed, it ends with a manifest that tells the truth.
    `track` is called once the directory is complete, and cannot change it.

    Raises:
        InputError: the directory is not fresh; nothing was written.
    """
    with ExitStack() as stack:
        interrupts = stack.enter_context(Interrupts(observer.stopping))
        directory = RunDirectory.create(launch.directory)
        stack.callback(directory.release)
        with run_log(directory.path / LOG):
            journal = _journal(plan, launch, directory)
            journal.save()
            attempt = _Attempt(plan, launch, directory, journal)
            ending = _ending(journal, lambda: attempt.run(observer, interrupts))
            outcome = _complete(plan, directory, journal, ending)
        directory.seal()
        tracked = ending.status is not RunStatus.REFUSED and not interrupts.impatient
        if tracked:
            track(directory, plan.tasks)
        return replace(outcome, signal=interrupts.pending, tracked=tracked)


def _journal(plan: Plan, launch: Launch, directory: RunDirectory) -> Journal:
    return Journal(
        directory,
        plan.settings,
        plan.dataset,
        requested=len(plan.tasks),
        ledger=launch.ledger(plan.settings.caps),
        sweep=launch.sweep.name if launch.sweep else None,
        overrides=launch.overrides,
        harness=plan.harness.describe(),
        resumed=plan.adoption.entry if plan.adoption else None,
    )


def _ending(journal: Journal, ask: Callable[[], RunOutcome]) -> Ending:
    """Ask, and say how that ended; nothing but an ending comes out of here."""
    try:
        outcome = ask()
    except InputError as error:
        return Ending(RunStatus.REFUSED, 2, error=error)
    except Interrupted as error:
        return Ending(RunStatus.INTERRUPTED, error.exit_status, error=error)
    except (Exception, SystemExit) as error:
        # Neither the person's mistake nor the provider's: the log gets the traceback.
        log.exception("the run crashed")
        return Ending(RunStatus.CRASHED, 1, error=error)
    if journal.counts.valid == journal.counts.requested:
        return Ending(RunStatus.COMPLETE, 0)
    return Ending(RunStatus.INCOMPLETE, 1, stop_reason=outcome.stop)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """Everything that lives only while requests are sent, opened and closed in order."""

    plan: Plan
    launch: Launch
    directory: RunDirectory
    journal: Journal

    def run(self, observer: Observer, interrupts: Interrupts) -> RunOutcome:
        settings = self.plan.settings
        with ExitStack() as stack:
            backend = make_backend(settings.backend, settings.model, self.plan.tasks)
            stack.callback(backend.close)
            with interrupts.waiting():
                backend.open(self.directory.path)
            with interrupts.waiting():
                session = self._identify(backend.describe())
            check_concurrency(backend, settings.runner.concurrency)
            ledger = stack.enter_context(self._open_ledger())
            stack.callback(_read_charges, ledger, self.journal)
            observer.started(self.plan)
            stack.callback(observer.finished)
            stack.callback(self.directory.place_adopted)
            self._adopt(observer)
            runner = self.plan.harness.runner(
                backend,
                ledger,
                self.directory,
                model=settings.model.alias,
                tariff=_tariff(settings, backend.cost_basis),
                reserve_usd=settings.caps.reserve_usd,
                session=session,
                interrupts=interrupts,
            )
            to_ask = self.plan.to_ask
            log.info("asking %d of %d tasks", len(to_ask), len(self.plan.tasks))
            return runner.run(to_ask, lambda record: self._note(record, observer))

    def _open_ledger(self) -> Ledger:
        """The ledger in force; one that is shared leaves this run's rows in the directory too."""
        caps = self.plan.settings.caps
        own = self.directory.path / LEDGER
        place = self.launch.ledger(caps)
        shared = str(place) != str(own)
        ledger = place.open(self.plan.cap_usd, own_rows=own if shared else None)
        # A row is only as durable as the name of its file.
        sync_directory(own.parent)
        if shared and isinstance(place, FilePlace):
            sync_directory(place.path.parent)
        return ledger

    def _identify(self, description: dict[str, Any]) -> SessionModel | None:
        """Note who answers; the model that every answer must come from, None where any may.

        Raises:
            InputError: it is not who was declared, and that is not to be tolerated.
        """
        settings = self.plan.settings
        found = identify(settings, description)
        entry = FingerprintEntry(**asdict(found.fingerprint))
        self.journal.opened(description, found.report.as_dict(), entry)
        adoption = self.plan.adoption
        if adoption and (reason := adoption.difference(entry)):
            raise InputError(f"resume: {reason}; these answers cannot stand in one run")
        if settings.identity == "record":
            return None
        if reason := found.report.reason():
            raise InputError(f"identity: {reason}; correct the claim, or set identity=record")
        model = description.get("model")
        for earlier in adoption.models if adoption else ():
            if model not in (None, earlier):
                raise InputError(f"resume: {earlier!r} answered then, {model!r} does now")
            model = earlier
        return SessionModel(model)

    def _adopt(self, observer: Observer) -> None:
        adoption = self.plan.adoption
        if adoption is None:
            return
        self.directory.adopt(adoption, [task.id for task in self.plan.tasks])
        log.info("took over %d answers of %s", len(adoption.answers), adoption.entry.run)
        for answer in adoption.answers:
            self._note(answer.record, observer)

    def _note(self, record: Record, observer: Observer) -> None:
        self.journal.record(record)
        observer.recorded(record)


def _complete(plan: Plan, directory: RunDirectory, journal: Journal, ending: Ending) -> Outcome:
    """Close the results, then write summary and manifest."""
    directory.close()
    summary = plan.harness.summarize(
        plan.tasks, directory.records(), ledger_charged_usd=journal.ledger_charged_usd
    )
    # The charges first: a kill right after the summary must not leave the two at odds.
    journal.save()
    directory.write_summary(summary)
    manifest = journal.save(ending)
    log.info("%s, stop reason: %s", ending.status, ending.stop_reason)
    return Outcome(directory, manifest, summary)


def _tariff(settings: Settings, cost_basis: str | None) -> Tariff:
    pricing = settings.pricing
    return Tariff(pricing.input_per_m, pricing.output_per_m, cost_basis or pricing.basis)


def _read_charges(ledger: Ledger, journal: Journal) -> None:
    try:
        charged_usd = ledger.charged_usd
    except LedgerError as error:
        # Not worth more than the reason why the run ends; its own charge is known all the same.
        log.warning("the ledger could not be read at the end: %s", error)
        charged_usd = ledger.charged_here_usd
    journal.charged(
        cap_usd=ledger.cap_usd, by_run_usd=ledger.charged_here_usd, by_all_usd=charged_usd
    )
