"""One run in this process: watched on the terminal, told to the tracker, reported at its end."""

from collections.abc import Callable, Sequence
from pathlib import Path

from jevexp import run as experiment
from jevexp.cli.console import make_run_console
from jevexp.cli.paths import remove_refused
from jevexp.cli.progress import make_observer
from jevexp.cli.report import Refused, report_run
from jevexp.cli.track import Tracking
from jevexp.errors import InputError
from jevexp.settings import Settings

console = make_run_console()
# Of the runs in this process; a launcher's other processes keep their own.
_tracking: list[Tracking] = []


def perform(
    make_plan: Callable[[], experiment.Plan], launch: experiment.Launch, *, number: int | None
) -> None:
    """Run a plan; how that ended stands in its directory, where the launching process reads it.

    Args:
        make_plan: checks everything that needs no provider.
        launch: where the run goes.
        number: which run of a sweep it is, from 0.

    Raises:
        Interrupted: a signal arrived; the one way to keep a sweep from going on.
    """
    observer = make_observer(console, number=number)
    try:
        plan = make_plan()
        tracking = Tracking(plan.settings, console)
        _tracking.append(tracking)
        outcome = experiment.run(plan, launch, observer, tracking)
    except InputError as error:
        # Somebody else took the directory, or changed a file since the command line was checked.
        console.print(f"{launch.directory.name}: {error}", markup=False)
        return
    except OSError as error:
        # The disk is full or gone: even the last manifest could not be written.
        kept = "what was written until then is kept" if launch.directory.exists() else "it is gone"
        reason = f"{error.strerror}; {kept}"
        console.print(f"{launch.directory}: {reason}", markup=False)
        return
    if outcome.signal:
        if not outcome.tracked:
            tracking.put_off(outcome.directory)
        raise outcome.signal


def tracking_of(settings: Settings) -> Tracking:
    """Where runs with these settings are logged, for somebody who only looks."""
    return Tracking(settings, console)


def report(directory: Path, made: Sequence[Path]) -> int:
    """Print the one run that was performed; its exit status.

    Args:
        directory: the run's.
        made: the directory and those of its parents that were made for it, innermost first.

    Raises:
        InputError: the run was refused; what was made for it is gone again.
    """
    try:
        status = report_run(console, directory)
    except Refused:
        remove_refused(made)
        raise
    for tracking in _tracking:
        tracking.print_links()
    return status
