"""One run from top to bottom: claim a directory, open the provider, ask, prove, track."""

import logging
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from io import BufferedWriter, TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TextIO

from jevexp.backends.protocol import check_concurrency
from jevexp.core.identity import Fingerprint, IdentityReport
from jevexp.core.record import Record, Summary
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.harness.interrupts import Interrupted, Interrupts
from jevexp.harness.runner import RunContext, RunOutcome, Tariff
from jevexp.harness.stops import ExpectedModel
from jevexp.identity import fingerprint, observe, reconcile
from jevexp.ledger.base import Ledger
from jevexp.ledger.location import LedgerFile
from jevexp.run.journal import Ending, Journal
from jevexp.run.planning import Launch, Plan
from jevexp.settings import Settings
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.store.directory import LEDGER, LOG
from jevexp.untrusted.console import SafeConsole
from jevexp.untrusted.files import permissions
from jevexp.untrusted.writing import create, sync_directory

log = logging.getLogger(__name__)


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
    summary: Summary
    signal: Interrupted | None = None
    tracked: bool = False


def run(
    plan: Plan,
    launch: Launch,
    observer: Observer,
    track: Callable[[RunDirectory, Sequence[Task]], None],
) -> Outcome:
    """Run a plan and leave its evidence in the launch's directory.

    Whatever happens after the directory is claimed, it ends with a manifest that tells the truth.
    `track` is called once the directory is complete, and cannot change it.

    Raises InputError: the directory is not fresh; nothing was written.
    """
    with ExitStack() as stack:
        stack.enter_context(permissions(group=plan.settings.group_access))
        interrupts = stack.enter_context(Interrupts(observer.stopping))
        directory = RunDirectory.create(launch.directory)
        stack.callback(directory.release)
        with run_log(directory.path / LOG):
            journal = Journal(directory, plan, launch)
            journal.save()
            ending = _ending(journal, lambda: _ask(plan, launch, journal, observer, interrupts))
            outcome = _complete(plan, journal, ending)
        directory.seal()
        tracked = ending.status is not RunStatus.REFUSED and not interrupts.impatient
        if tracked:
            track(directory, plan.tasks)
        return replace(outcome, signal=interrupts.pending, tracked=tracked)


def _ending(journal: Journal, ask: Callable[[], RunOutcome]) -> Ending:
    """Ask, and describe how that ended; every exception ends here."""
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


def _complete(plan: Plan, journal: Journal, ending: Ending) -> Outcome:
    """Close the results, then write summary and manifest."""
    directory = journal.directory
    directory.close()
    summary = plan.harness.summarize(
        plan.tasks, directory.records(), ledger_charged_usd=journal.ledger.charged_usd
    )
    # The charges first: a kill right after the summary must not leave the two at odds.
    journal.save()
    directory.write_summary(summary)
    manifest = journal.save(ending)
    log.info("%s, stop reason: %s", ending.status, ending.stop_reason)
    return Outcome(directory, manifest, summary)


def _ask(
    plan: Plan, launch: Launch, journal: Journal, observer: Observer, interrupts: Interrupts
) -> RunOutcome:
    """Put the tasks to the provider; raises InputError, and Interrupted after a signal."""

    def note(record: Record) -> None:
        journal.record(record)
        observer.recorded(record)

    settings, backend, directory = plan.settings, plan.backend, journal.directory
    with ExitStack() as stack:
        stack.callback(backend.close)
        with interrupts.waiting():
            backend.open(directory.path)
        with interrupts.waiting():
            expected = _expected_model(plan, backend.describe(), journal)
        check_concurrency(backend, settings.runner.concurrency)
        ledger = stack.enter_context(_open_ledger(plan, launch, directory))
        stack.callback(journal.charged, ledger)
        observer.started(plan)
        stack.callback(observer.finished)
        stack.callback(directory.place_adopted)
        if adoption := plan.adoption:
            directory.adopt(adoption, [task.id for task in plan.tasks])
            log.info("took over %d answers of %s", len(adoption.answers), adoption.entry.run)
            for answer in adoption.answers:
                note(answer.record)
        pricing = settings.pricing
        basis = backend.cost_basis or pricing.basis
        runner = plan.harness.runner(
            RunContext(
                backend,
                ledger,
                directory,
                model=settings.model.alias,
                tariff=Tariff(pricing.input_per_m, pricing.output_per_m, basis),
                reserve_usd=settings.caps.reserve_usd,
                expected=expected,
                interrupts=interrupts,
            )
        )
        log.info("asking %d of %d tasks", len(plan.to_ask), len(plan.tasks))
        return runner.run(plan.to_ask, note)


def _open_ledger(plan: Plan, launch: Launch, directory: RunDirectory) -> Ledger:
    """The ledger in force; one that is shared leaves this run's rows in the directory too."""
    own = directory.path / LEDGER
    location = launch.ledger(plan.settings.caps)
    shared = str(location) != str(own)
    ledger = location.open(plan.cap_usd, own_rows=own if shared else None)
    # A row is only as durable as the name of its file.
    sync_directory(own.parent)
    if shared and isinstance(location, LedgerFile):
        sync_directory(location.path.parent.resolve())
    return ledger


@dataclass(frozen=True, slots=True)
class Identification:
    """Who answers, held against who was declared, and the hash of what is measured."""

    report: IdentityReport
    fingerprint: Fingerprint


def identify(settings: Settings, description: Mapping[str, Any]) -> Identification:
    """Identify an open provider by its description and, where it is here, its weights' file.

    Raises InputError: the file that the provider was started with cannot be read.
    """
    started_with = description.get("gguf")
    observed = observe(
        description,
        weights=Path(started_with) if started_with else None,
        show=SafeConsole(stderr=True),
    )
    report = reconcile(settings.model, observed)
    return Identification(report, fingerprint(description, report, settings.runner.concurrency))


def _expected_model(
    plan: Plan, description: dict[str, Any], journal: Journal
) -> ExpectedModel | None:
    """Note who answers; the model of every answer, None for any. Raises InputError."""
    identification = identify(plan.settings, description)
    journal.opened(description, identification.report, identification.fingerprint)
    adoption = plan.adoption
    if adoption and (reason := adoption.difference(identification.fingerprint)):
        raise InputError(f"resume: {reason}; these answers cannot stand in one run")
    if plan.settings.identity == "record":
        return None
    if reason := identification.report.reason():
        raise InputError(f"identity: {reason}; correct the claim, or set identity=record")
    model = description.get("model")
    for earlier in adoption.models if adoption else ():
        if model not in (None, earlier):
            raise InputError(f"resume: {earlier!r} answered then, {model!r} does now")
        model = earlier
    return ExpectedModel(model)


LOGGER = logging.getLogger("jevexp")

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class _Formatter(logging.Formatter):
    """Tracebacks with places and classes, and without messages.

    A provider's message may hold an address, a path or a key, and the log is evidence. Of the
    operating system's errors there is also what the system says.
    """

    def formatException(self, ei: ExcInfo) -> str:  # noqa: N802  logging's own name
        """The calls that led to the error, and to what it came from."""
        lines = []
        error = ei[1]
        seen: set[int] = set()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            lines += [line.rstrip("\n") for line in traceback.format_tb(error.__traceback__)]
            name = type(error).__name__
            if isinstance(error, OSError) and error.errno:
                name += f": {error.strerror}"
            lines.append(name)
            error = error.__cause__ or error.__context__
            if error is not None:
                lines.append("which came from:")
        return "\n".join(lines)


class _Handler(logging.StreamHandler[TextIO]):
    """Writes the log, or loses a line of it.

    Where the disk is full the run itself says so, in one line.
    """

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  logging's own name
        """Say nothing; logging would print a traceback on the terminal."""


@contextmanager
def run_log(path: Path) -> Iterator[None]:
    """Send jevexp's own log to a new file, and nobody else's.

    Libraries log request addresses and headers; none of that belongs into evidence.

    Raises FileExistsError: the file exists.
    """
    file = TextIOWrapper(BufferedWriter(create(path)), encoding="utf-8", errors="backslashreplace")
    handler = _Handler(file)
    formatter = _Formatter("%(asctime)sZ %(levelname)s %(name)s: %(message)s")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    level, propagate = LOGGER.level, LOGGER.propagate
    LOGGER.setLevel(logging.INFO)
    # The terminal has its own words for what matters.
    LOGGER.propagate = False
    LOGGER.addHandler(handler)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)
        LOGGER.propagate = propagate
        handler.close()
        with suppress(OSError):
            file.close()
