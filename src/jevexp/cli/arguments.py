"""Arguments that several verbs share: which runs, where MLflow is, how sure, where a page goes."""

import argparse
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from jevexp.analysis.estimates import Options
from jevexp.analysis.report.page import PAGE, ReportPaths
from jevexp.analysis.runs import FinishedRun, read_run
from jevexp.cli.console import add_outputs, make_console
from jevexp.core.json import dumps
from jevexp.core.task import Task
from jevexp.datasets import planned_tasks_or_none
from jevexp.errors import InputError
from jevexp.settings import MlflowTracking
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.store.directory import MANIFEST
from jevexp.store.finding import run_directories
from jevexp.tracking import TrackingError
from jevexp.tracking.mlflow import MlflowTracker

_RUN_ID = re.compile(r"(?:mlflow:)?([0-9a-f]{32})")
# As conf/tracking/mlflow.yaml has them.
_TRACKING = {"kind": "mlflow", "raw_evidence": False, "timeout_s": 10.0}


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where MLflow is, and how to log in there."""
    add_outputs(parser, "the folder of runs, with MLflow's database (default: outputs)")
    parser.add_argument("--uri", help="another MLflow store: a server's or database's address")
    parser.add_argument("--experiment", default="jevexp", metavar="NAME", help="default: jevexp")
    add_login(parser)


def add_login(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the environment variables of a server's login."""
    for name in ("token", "username", "password"):
        parser.add_argument(
            f"--{name}-env",
            metavar="VARIABLE",
            help=f"the environment variable with the server's {name}",
        )
    parser.add_argument(
        "--allow-http",
        action="store_true",
        help="the login may go to another machine by plain http, readable on the way",
    )


def add_runs(parser: argparse.ArgumentParser) -> None:
    """Add the options that name runs: as arguments, the baseline, and MLflow's filter."""
    parser.add_argument(
        "runs", nargs="*", metavar="RUN", help="a run directory, a sweep's, or an MLflow run id"
    )
    parser.add_argument("--baseline", metavar="RUN", help="the run that the others are compared to")
    parser.add_argument(
        "--where",
        metavar="FILTER",
        help="also the runs that MLflow finds, oldest first, such as \"tags.jev.sweep = '…'\"",
    )
    add_store(parser)


def add_statistics(parser: argparse.ArgumentParser) -> None:
    """Add the options that any interval needs: the level, and the bootstrap's draws and seed."""
    parser.add_argument(
        "--alpha",
        type=number("above 0 and below 0.5", lambda value: 0 < value < 0.5),
        default=0.05,
        help="the level of the tests; intervals are at 1 - ALPHA (default: %(default)s)",
    )
    for name, least, default in (("draws", 100, 10_000), ("seed", 0, 0)):
        parser.add_argument(
            f"--{name}",
            type=_whole(least),
            default=default,
            help="of the bootstrap (default: %(default)s)",
        )


def add_page(parser: argparse.ArgumentParser) -> None:
    """Add the options of a page with verdicts: the statistics, the margin, and what is replaced."""
    parser.add_argument(
        "--margin",
        type=number("above 0", lambda value: 0 < value < math.inf),
        default=0.02,
        help="smaller differences count as none, in the metric's unit (default: %(default)s)",
    )
    add_statistics(parser)
    parser.add_argument("--force", action="store_true", help="replace files that are there already")


def options_of(arguments: argparse.Namespace) -> Options:
    """The options that a command line with those of `add_page` gives."""
    return Options(arguments.alpha, arguments.margin, arguments.draws, arguments.seed)


def number(allowed_range: str, is_allowed: Callable[[float], bool]) -> Callable[[str], float]:
    """A reader of numbers in a range, which messages name as "above 0"."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not is_allowed(value):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number {allowed_range}")
        return value

    return read


def _whole(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least}")
        return int(text)

    return read


def login_fields(arguments: argparse.Namespace) -> dict[str, str | bool | None]:
    """The login's settings, as the command line names them."""
    names = ("token_env", "username_env", "password_env", "allow_http")
    return {name: getattr(arguments, name) for name in names}


def store_settings(arguments: argparse.Namespace) -> MlflowTracking:
    """MLflow's settings for the options of `add_store`.

    Raises InputError: the address or the login is unusable.
    """
    store = {"uri": arguments.uri, "experiment": arguments.experiment}
    return MlflowTracking.of(_TRACKING | store | login_fields(arguments), at="tracking")


def run_id_of(argument: str) -> str | None:
    """The MLflow run id that an argument is; None for a path, which it always is if it exists."""
    match = None if Path(argument).exists() else _RUN_ID.fullmatch(argument)
    return match and match[1]


class TrackedRuns:
    """MLflow's runs as directories: where they were logged from, or copies.

    Args:
        arguments: of a command line with the options of `add_store`.
        copies: a folder for what has to be downloaded.

    Raises InputError: the address or the login is unusable.
    """

    def __init__(self, arguments: argparse.Namespace, copies: Path) -> None:
        self._experiment: str = arguments.experiment
        self._copies = copies
        self._store = MlflowTracker(store_settings(arguments), arguments.outputs).store
        self._fetched: dict[str, RunDirectory] = {}

    def select(self, where: str) -> list[RunDirectory]:
        """The runs that MLflow's filter selects.

        Raises InputError: MLflow cannot be asked, or nothing matches.
        """
        try:
            selected = self._store.select(where)
        except TrackingError as error:
            raise InputError(f"--where: {error}") from error
        if not selected:
            raise InputError(f"--where: no run of experiment {self._experiment!r} matches {where}")
        return [self.fetch(run.run_id) for run in selected]

    def fetch(self, run_id: str) -> RunDirectory:
        """One run.

        Raises InputError: MLflow cannot be asked, or does not have the run or its files.
        """
        if run_id not in self._fetched:
            try:
                self._fetched[run_id] = self._store.fetch(run_id, self._copies)
            except TrackingError as error:
                raise InputError(str(error)) from error
        return self._fetched[run_id]

    def name_of(self, path: Path) -> Path:
        """What a run directory is called: a copy, which will be gone, by its id in MLflow."""
        if not path.is_relative_to(self._copies):
            return path
        return Path(f"mlflow:{path.relative_to(self._copies).parts[0]}")


def read_chosen(arguments: argparse.Namespace) -> list[FinishedRun]:
    """The runs that a command line with the options of `add_runs` names, the baseline first.

    Raises InputError: there is no such run, the baseline is not one run, or one cannot be read.
    """
    with TemporaryDirectory(prefix="jevexp-runs-") as folder:
        tracked = TrackedRuns(arguments, Path(folder))

        def resolve(argument: str) -> list[RunDirectory]:
            run_id = run_id_of(argument)
            return [tracked.fetch(run_id)] if run_id else answered(Path(argument))

        directories = [directory for argument in arguments.runs for directory in resolve(argument)]
        if arguments.where is not None:
            directories += tracked.select(arguments.where)
        if arguments.baseline is not None:
            baselines = resolve(arguments.baseline)
            if len(baselines) != 1:
                raise InputError(
                    f"{arguments.baseline}: a baseline is one run, found {len(baselines)}"
                )
            path = baselines[0].path.resolve()
            others = [other for other in directories if other.path.resolve() != path]
            directories = [*baselines, *others]
        return [replace(run, path=tracked.name_of(run.path)) for run in read_runs(directories)]


def answered(path: Path) -> list[RunDirectory]:
    """The run at `path`, or those runs of a sweep that were not refused.

    The refused ones are named on standard error.

    Raises InputError: there is no run.
    """
    directories = run_directories(path)
    if directories[0].path == path:
        return directories
    kept = []
    for directory in directories:
        if directory.read_manifest().status is RunStatus.REFUSED:
            message = f"left out: {directory.path} was refused"
            make_console(stderr=True).print(message, highlight=False, markup=False)
        else:
            kept.append(directory)
    return kept


def read_runs(directories: Sequence[RunDirectory]) -> list[FinishedRun]:
    """Read the runs; tasks that several of them share are read once.

    Raises InputError: one cannot be read, or holds nothing to compare.
    """
    known: dict[tuple[str, str, int], Sequence[Task] | None] = {}

    def find_tasks(manifest: Manifest) -> Sequence[Task] | None:
        settings = dumps(manifest.config.resolved["dataset"], sort_keys=True)
        key = (settings, manifest.dataset.dataset_hash, manifest.counts.requested)
        if key not in known:
            known[key] = planned_tasks_or_none(manifest)
        return known[key]

    return [read_run(directory, find_tasks) for directory in directories]


def report_paths(path: Path, *, option: str, force: bool) -> ReportPaths:
    """The page at `path`: the file itself, or report.html in the folder.

    A name that ends with .html is a file, any other one a folder, which is made if need be.
    `option` is how the command line names it.

    Raises InputError: it is a run's directory, or something is there that would be overwritten.
    """
    if (path / MANIFEST).is_file():
        raise InputError(
            f"{option} {path}: is a run, no place for this page; give a file or folder right "
            f"behind {option}, or put it last"
        )
    page = path if path.suffix == ".html" else path / PAGE
    # A folder that a person names may be a link of theirs.
    folder = page.parent.resolve() if page.parent.is_symlink() else page.parent
    return free_paths(folder / page.name, force=force)


def free_paths(page: Path, *, force: bool) -> ReportPaths:
    """The paths of a page and its plots, where nothing else is in the way.

    Raises InputError: a file is there and may not be replaced, or cannot be.
    """
    paths = ReportPaths(page)
    if page.is_dir():
        raise InputError(f"{page}: is a folder; give the page another name")
    if paths.plots.exists() and not paths.plots.is_dir():
        raise InputError(f"{paths.plots}: is a file; the plots need a folder of this name")
    if not force and (existing := next(iter(paths.existing()), None)):
        raise InputError(f"{existing}: exists; give another place, or --force to replace it")
    return paths
