"""The tracker that writes to MLflow."""

import fcntl
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.settings import MlflowTracking
from jevexp.store import RunDirectory
from jevexp.store.directory import MANIFEST
from jevexp.tracking import (
    NO_REPORT,
    RunReport,
    SweepComparison,
    TrackedRun,
    Tracker,
    TrackingError,
)
from jevexp.tracking.mlflow.child import ChildStore
from jevexp.tracking.mlflow.content import read
from jevexp.tracking.mlflow.environment import login
from jevexp.tracking.mlflow.links import DEFAULT_PORT, make_links
from jevexp.tracking.mlflow.location import OUTPUTS, StoreLocation, adopt
from jevexp.tracking.mlflow.store import MlflowStore
from jevexp.untrusted.files import open_file
from jevexp.untrusted.locks import holder


class MlflowTracker(Tracker):
    """Logs run directories to one experiment of one MLflow store.

    A database on this machine is written in this process. Everything else is asked in a process of
    its own, whose time and memory are bounded. Nothing is imported, opened or asked before a call.
    What only MLflow can do, such as its filters, callers ask of `store`.
    """

    def __init__(self, settings: MlflowTracking, outputs: Path) -> None:
        self.location = StoreLocation.of(settings.uri, outputs)
        self._settings = settings
        self._outputs = outputs
        kind: type[ChildStore | MlflowStore] = MlflowStore if self.location.database else ChildStore
        self.store = kind(settings, self.location, login(settings))

    def check(self) -> str:
        """Where runs would be logged."""
        return self.location.check(self._settings.timeout_s)

    def check_own(self) -> None:
        """Refuse a database that is only found beside runs and may be somebody else's."""
        try:
            self.location.check_own()
        except TrackingError as error:
            raise InputError(str(error)) from error

    def log(
        self,
        directory: RunDirectory,
        tasks: Sequence[Task] | None = None,
        report: RunReport = NO_REPORT,
    ) -> TrackedRun:
        """Log a finished run from its directory; once, however often it is called."""
        with self.store.watching(), _only_logger_of(directory):
            try:
                content = read(directory, tasks, self._settings, report)
            except InputError as error:
                raise TrackingError(str(error)) from error
            except (OSError, ValueError) as error:
                reason = f"{type(error).__name__}: {error}".splitlines()[0]
                raise TrackingError(f"{directory.path}: cannot be read: {reason}") from error
            run = self.store.write(content)
        if self.location.named and self.location.database is not None:
            adopt(self.location.database)
        return run

    def log_comparison(self, comparison: SweepComparison) -> TrackedRun:
        """Log the comparison of a sweep as a run of its own; once, however often it is called."""
        with self.store.watching(), _only_logger_of(comparison.runs[0]):
            return self.store.write_comparison(comparison)

    def runs(self, sweep: str | None = None) -> list[TrackedRun]:
        """The runs of a sweep, oldest first; without one, the newest runs worth comparing."""
        return self.store.find_runs(sweep)

    def addresses(
        self,
        runs: Sequence[TrackedRun],
        comparisons: Sequence[TrackedRun] = (),
        base: str | None = None,
    ) -> list[str]:
        """Where a browser shows these runs, one address a line, labelled.

        `base` is the address of a user interface; None means the usual one.
        """
        if not runs:
            return []
        if base is None and self.location.served:
            base = self.location.uri
        links = [*make_links(base or f"http://127.0.0.1:{DEFAULT_PORT}", runs, comparisons)]
        start = [] if base else [("start", self._start_command())]
        return [f"{label:<8}  {address}" for label, address in [*start, *links]]

    def _start_command(self) -> str:
        if self._settings.uri is not None:
            return f"jevexp ui --uri {shlex.quote(self._settings.uri)}"
        if self._outputs.absolute() == Path(OUTPUTS).absolute():
            return "jevexp ui"
        return f"jevexp ui --outputs {shlex.quote(str(self._outputs))}"

    def export_command(self, path: Path) -> str:
        """The command that logs a run or a sweep to the same store later; no secret."""
        options = export_options(self._settings, str(self._outputs))
        return " ".join(["jevexp export", shlex.quote(str(path)), *options])


def export_options(settings: MlflowTracking, outputs: str = OUTPUTS) -> list[str]:
    """The options with which `jevexp export` goes where these settings say; no secret."""
    served = (settings.uri or "").startswith(("http://", "https://"))
    named = {
        "--outputs": None if served or outputs == OUTPUTS else outputs,
        "--uri": settings.uri,
        "--token-env": settings.token_env,
        "--username-env": settings.username_env,
        "--password-env": settings.password_env,
    }
    words = [word for name, value in named.items() if value for word in (name, shlex.quote(value))]
    return [*words, "--allow-http"] if settings.uri and settings.allow_http else words


# The name that `jevexp.tracking.make_tracker` calls.
make = MlflowTracker


@contextmanager
def _only_logger_of(directory: RunDirectory) -> Iterator[None]:
    """Let one process at a time log a run, and leave no file; raises TrackingError."""
    try:
        manifest = open_file(directory.path / MANIFEST, follow_links=False)
    except OSError as error:
        raise TrackingError(f"{directory.path}: cannot be read: {error.strerror}") from error
    with manifest:
        try:
            fcntl.flock(manifest, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise TrackingError(
                f"{directory.path}: {holder(directory.path / MANIFEST)} is logging it"
            ) from error
        yield
