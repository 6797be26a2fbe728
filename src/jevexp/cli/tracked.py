"""Command lines that name runs as MLflow knows them: by run id, or by a filter."""

import argparse
import re
from pathlib import Path

from jevexp.errors import InputError
from jevexp.settings import MlflowTracking
from jevexp.store import RunDirectory
from jevexp.tracking import TrackingError
from jevexp.tracking.mlflow import MlflowTracker
from jevexp.tracking.mlflow.location import OUTPUTS

_RUN_ID = re.compile(r"(?:mlflow:)?([0-9a-f]{32})")
# As conf/tracking/mlflow.yaml has them.
_DEFAULTS = {
    "kind": "mlflow",
    "uri": None,
    "experiment": "jevexp",
    "raw_evidence": False,
    "timeout_s": 10.0,
}


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where MLflow is, and how it is asked."""
    parser.add_argument(
        "--outputs",
        type=Path,
        default=Path(OUTPUTS),
        metavar="DIR",
        help="the folder of runs, with MLflow's database (default: outputs)",
    )
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


def add_where(parser: argparse.ArgumentParser) -> None:
    """Add the filter, and where it is asked."""
    parser.add_argument(
        "--where",
        metavar="FILTER",
        help="also the runs that MLflow finds, oldest first, such as \"tags.jev.sweep = '…'\"",
    )
    add_store(parser)


def login_fields(arguments: argparse.Namespace) -> dict[str, str | bool | None]:
    """The login's settings, as the command line names them."""
    names = ("token_env", "username_env", "password_env", "allow_http")
    return {name: getattr(arguments, name) for name in names}


def store_settings(arguments: argparse.Namespace) -> MlflowTracking:
    """MLflow's settings for what the command line says about MLflow.

    Raises:
        InputError: the address or the login is unusable.
    """
    given = {"uri": arguments.uri, "experiment": arguments.experiment}
    return MlflowTracking.of(_DEFAULTS | given | login_fields(arguments), at="tracking")


def run_id_of(argument: str) -> str | None:
    """The MLflow run id that an argument is; None for a path, which it always is if it exists."""
    found = None if Path(argument).exists() else _RUN_ID.fullmatch(argument)
    return found and found[1]


class TrackedRuns:
    """MLflow's runs as directories: where they were logged from, or copies."""

    def __init__(self, arguments: argparse.Namespace, copies: Path) -> None:
        """Ask nothing yet.

        Args:
            arguments: of a command line with the options of `add_where`.
            copies: a folder for what has to be downloaded.

        Raises:
            InputError: the address or the login is unusable.
        """
        self._where: str | None = arguments.where
        self._experiment: str = arguments.experiment
        self._copies = copies
        self._tracker = MlflowTracker(store_settings(arguments), arguments.outputs)
        self._fetched: dict[str, RunDirectory] = {}

    def selected(self) -> list[RunDirectory]:
        """The runs that `--where` selects; none without it.

        Raises:
            InputError: MLflow cannot be asked, or nothing is found.
        """
        if self._where is None:
            return []
        try:
            found = self._tracker.select(self._where)
        except TrackingError as error:
            raise InputError(f"--where: {error}") from error
        if not found:
            raise InputError(
                f"--where: no run of experiment {self._experiment!r} matches {self._where}"
            )
        return [self.fetch(run.run_id) for run in found]

    def fetch(self, run_id: str) -> RunDirectory:
        """One run.

        Raises:
            InputError: MLflow cannot be asked, or does not have the run or its files.
        """
        if run_id not in self._fetched:
            try:
                self._fetched[run_id] = self._tracker.fetch(run_id, self._copies)
            except TrackingError as error:
                raise InputError(str(error)) from error
        return self._fetched[run_id]

    def name_of(self, path: Path) -> Path:
        """What a run directory is called: a copy, which will be gone, by its id in MLflow."""
        if not path.is_relative_to(self._copies):
            return path
        return Path(f"mlflow:{path.relative_to(self._copies).parts[0]}")
