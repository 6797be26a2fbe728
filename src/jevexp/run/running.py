"""One run from top to bottom: claim a directory, ask, prove, track."""

import logging
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from io import BufferedWriter, TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import TextIO

from jevexp.core.record import Summary
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.harness.interrupts import Interrupted, Interrupts
from jevexp.harness.runner import RunOutcome
from jevexp.run.asking import Observer, ProviderSession
from jevexp.run.journal import Ending, Journal
from jevexp.run.planning import Launch, Plan
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.store.directory import LOG
from jevexp.untrusted.files import permissions
from jevexp.untrusted.writing import create

log = logging.getLogger(__name__)


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

    Raises:
        InputError: the directory is not fresh; nothing was written.
    """
    with ExitStack() as stack:
        stack.enter_context(permissions(group=plan.settings.group_access))
        interrupts = stack.enter_context(Interrupts(observer.stopping))
        directory = RunDirectory.create(launch.directory)
        stack.callback(directory.release)
        with run_log(directory.path / LOG):
            journal = _journal(plan, launch, directory)
            journal.save()
            session = ProviderSession(plan, launch, directory, journal)
            ending = _ending(journal, lambda: session.run(observer, interrupts))
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
        adoption=plan.adoption,
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


LOGGER = logging.getLogger("jevexp")

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class _Formatter(logging.Formatter):
    """Tracebacks with places and classes, and without messages.

    A provider's message may hold an address, a path or a key, and the log is evidence.
    """

    def formatException(self, ei: ExcInfo) -> str:  # noqa: N802  logging's own name
        """The calls that led to the error, and to what it came from."""
        lines = []
        error = ei[1]
        seen: set[int] = set()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            lines += [line.rstrip("\n") for line in traceback.format_tb(error.__traceback__)]
            lines.append(_words(error))
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


def _words(error: BaseException) -> str:
    """The error's class; of the operating system's errors also what the system says."""
    name = type(error).__name__
    return f"{name}: {error.strerror}" if isinstance(error, OSError) and error.errno else name


@contextmanager
def run_log(path: Path) -> Iterator[None]:
    """Send jevexp's own log to a new file, and nobody else's.

    Libraries log request addresses and headers; none of that belongs into evidence.

    Raises:
        FileExistsError: the file exists.
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
