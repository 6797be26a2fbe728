"""One run in this process: its progress, its tracking and its report at the end."""

from collections.abc import Sequence
from pathlib import Path

from jevexp.cli.console import make_run_console
from jevexp.cli.end_of_run import Refused, report_run, report_run_on_disk
from jevexp.cli.paths import remove_refused
from jevexp.cli.progress import make_observer
from jevexp.cli.track import Tracking
from jevexp.errors import InputError
from jevexp.run import Launch, Outcome, Plan, plan, run
from jevexp.settings import Settings

console = make_run_console()


def perform(
    planned: Plan, launch: Launch, tracking: Tracking, *, number: int | None
) -> Outcome | None:
    """Run a plan.

    Args:
        planned: what was checked.
        launch: where the run goes.
        tracking: hears of it.
        number: which run of a sweep it is, from 0.

    Returns:
        How it ended; None where it could not even say that in its directory, and the reason was
        printed.
    """
    observer = make_observer(console, number=number)
    try:
        outcome = run(planned, launch, observer, tracking)
    except InputError as error:
        # Somebody else took the directory since the command line was checked.
        console.print(f"{launch.directory.name}: {error}", markup=False)
        return None
    except OSError as error:
        # The disk is full or gone: even the last manifest could not be written.
        kept = "what was written until then is kept" if launch.directory.exists() else "it is gone"
        reason = f"{error.strerror}; {kept}"
        console.print(f"{launch.directory}: {reason}", markup=False)
        return None
    if outcome.signal and not outcome.tracked:
        tracking.put_off(outcome.directory)
    return outcome


def perform_member(settings: Settings, launch: Launch, *, number: int) -> None:
    """Plan and run one of a sweep's runs; the launching process reads its directory.

    Raises:
        Interrupted: a signal arrived; the one way to keep a sweep from going on.
    """
    try:
        member = plan(settings)
    except InputError as error:
        # A file has changed since the command line was checked.
        console.print(f"{launch.directory.name}: {error}", markup=False)
        return
    outcome = perform(member, launch, tracking_of(settings), number=number)
    if outcome and outcome.signal:
        raise outcome.signal


def perform_single(planned: Plan, launch: Launch, made: Sequence[Path]) -> int:
    """Run a plan that is no part of a sweep and print what came of it; the exit status.

    Args:
        planned: what was checked.
        launch: where the run goes.
        made: the directory and those of its parents that were made for it, innermost first.

    Raises:
        InputError: the run was refused; what was made for it is gone again.
    """
    tracking = tracking_of(planned.settings)
    outcome = perform(planned, launch, tracking, number=None)
    if outcome is None:
        return report_run_on_disk(console, launch.directory)
    try:
        status = report_run(console, outcome.directory, outcome.manifest, outcome.summary)
    except Refused:
        remove_refused(made)
        raise
    tracking.print_links()
    return status


def tracking_of(settings: Settings) -> Tracking:
    """Where runs with these settings are logged."""
    return Tracking(settings, console)
