"""The part of a run that needs a provider: open it, identify it, put the tasks to it."""

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from jevexp.backends.protocol import check_concurrency
from jevexp.core.identity import Fingerprint, IdentityReport
from jevexp.core.record import Record
from jevexp.errors import InputError
from jevexp.harness.interrupts import Interrupts
from jevexp.harness.runner import RunContext, RunOutcome, Tariff
from jevexp.harness.stops import ExpectedModel
from jevexp.identity import fingerprint, observe, reconcile
from jevexp.ledger import Ledger, LedgerError, LedgerFile
from jevexp.run.journal import Journal
from jevexp.run.planning import Launch, Plan
from jevexp.settings import Settings
from jevexp.store import RunDirectory
from jevexp.store.directory import LEDGER
from jevexp.untrusted.console import SafeConsole
from jevexp.untrusted.writing import sync_directory

log = logging.getLogger(__name__)


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
class ProviderSession:
    """Everything that lives only while requests are sent, opened and closed in order."""

    plan: Plan
    launch: Launch
    directory: RunDirectory
    journal: Journal

    def run(self, observer: Observer, interrupts: Interrupts) -> RunOutcome:
        """Put the tasks to the provider, until the last one or a stop rule.

        Raises:
            InputError: the provider or the ledger cannot be used as configured.
            Interrupted: a signal arrived.
        """
        settings = self.plan.settings
        with ExitStack() as stack:
            backend = self.plan.backend
            stack.callback(backend.close)
            with interrupts.waiting():
                backend.open(self.directory.path)
            with interrupts.waiting():
                expected = self._identify(backend.describe())
            check_concurrency(backend, settings.runner.concurrency)
            ledger = stack.enter_context(self._open_ledger())
            stack.callback(_read_charges, ledger, self.journal)
            observer.started(self.plan)
            stack.callback(observer.finished)
            stack.callback(self.directory.place_adopted)
            self._adopt(observer)
            runner = self.plan.harness.runner(
                RunContext(
                    backend,
                    ledger,
                    self.directory,
                    model=settings.model.alias,
                    tariff=_tariff(settings, backend.cost_basis),
                    reserve_usd=settings.caps.reserve_usd,
                    expected=expected,
                    interrupts=interrupts,
                )
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
        if shared and isinstance(place, LedgerFile):
            sync_directory(place.path.parent.resolve())
        return ledger

    def _identify(self, description: dict[str, Any]) -> ExpectedModel | None:
        """Note who answers; the model that every answer must come from, None where any may.

        Raises:
            InputError: it is not who was declared, and that is not to be tolerated.
        """
        settings = self.plan.settings
        identification = identify(settings, description)
        self.journal.opened(description, identification.report, identification.fingerprint)
        adoption = self.plan.adoption
        if adoption and (reason := adoption.difference(identification.fingerprint)):
            raise InputError(f"resume: {reason}; these answers cannot stand in one run")
        if settings.identity == "record":
            return None
        if reason := identification.report.reason():
            raise InputError(f"identity: {reason}; correct the claim, or set identity=record")
        model = description.get("model")
        for earlier in adoption.models if adoption else ():
            if model not in (None, earlier):
                raise InputError(f"resume: {earlier!r} answered then, {model!r} does now")
            model = earlier
        return ExpectedModel(model)

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
