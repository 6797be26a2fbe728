"""`jevexp export RUN...`: log finished run directories to MLflow."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from jevexp.cli.additions import run_report
from jevexp.cli.console import make_console
from jevexp.cli.sweep_comparison import sweep_comparison
from jevexp.cli.tracked import add_login, login_fields
from jevexp.datasets import planned_tasks_or_none
from jevexp.errors import InputError
from jevexp.settings import MlflowTracking
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.store.finding import run_directories
from jevexp.tracking import TrackedRun, Tracker, TrackingError, make_tracker
from jevexp.tracking.mlflow import export_options
from jevexp.tracking.mlflow.location import DATABASE, OUTPUTS


class Target(NamedTuple):
    """Where a run goes."""

    settings: MlflowTracking
    outputs: Path


class Export(NamedTuple):
    """A run that is to be logged."""

    directory: RunDirectory
    manifest: Manifest
    target: Target
    sweep: Path | None


def main(argv: Sequence[str]) -> int:
    """Run the verb; 0 when every run is tracked now, 1 when one could not be logged.

    Raises:
        InputError: a path is no run and no sweep, or the address is unusable.
    """
    arguments = _parser().parse_args(argv)
    # All of them are checked before the first one is logged.
    exports = [
        _plan(directory, path, arguments)
        for path in arguments.runs
        for directory in run_directories(path)
    ]
    console = make_console()
    complete = True
    for target, chosen in _by_target(exports).items():
        tracker = make_tracker(*target)
        tracked = [run for export in chosen if (run := _log(console, tracker, export))]
        complete = complete and len(tracked) == len(chosen)
        sweeps = dict.fromkeys(export.sweep for export in chosen if export.sweep)
        comparisons = []
        for sweep in sweeps:
            try:
                if (
                    tracked
                    and (comparison := sweep_comparison(sweep))
                    and (run := tracker.log_comparison(comparison))
                ):
                    console.print(Text(f"{run.change:<10}  comparison of {sweep}"))
                    comparisons.append(run)
            except (InputError, TrackingError) as error:
                console.print(Text(f"no comparison of {sweep}: {error}", style="yellow"))
                complete = complete and isinstance(error, InputError)
        if addresses := tracker.addresses(tracked, comparisons):
            console.print("", *map(Text, addresses), sep="\n")
    return 0 if complete else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jevexp export",
        description="Log finished run directories to MLflow. A run that is there is left alone.",
    )
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="a run directory, or a folder of them"
    )
    parser.add_argument(
        "--outputs",
        type=Path,
        metavar="DIR",
        help="the folder of runs whose database gets them (default: the nearest one above a run "
        "that has one, else outputs)",
    )
    parser.add_argument("--uri", help="another MLflow store: a server's or database's address")
    parser.add_argument("--experiment", metavar="NAME", help="the experiment that gets the runs")
    add_login(parser)
    parser.add_argument("--raw", action="store_true", help="also log the raw evidence")
    parser.add_argument("--report", action="store_true", help="also log the page and its plots")
    parser.add_argument("--traces", action="store_true", help="also log one trace a task")
    return parser


def _plan(directory: RunDirectory, given: Path, arguments: argparse.Namespace) -> Export:
    """Send a run where the command line says, else into the database of the folder it lies in.

    Raises:
        InputError: it was configured to go elsewhere, or the database may be somebody else's. A run
            directory may be anybody's, and could name any address and any environment variable as
            its login.
    """
    manifest = directory.read_manifest()
    resolved = manifest.config.resolved
    fields = resolved["tracking"] | {"kind": "mlflow"}
    fields.pop("also", None)
    if arguments.uri is None and arguments.outputs is None and fields.get("uri") is not None:
        settings = MlflowTracking.of(fields, at="tracking")
        raise InputError(
            f"{directory.path}: its own configuration sends it to another place; confirm that with "
            f"{' '.join(export_options(settings))}"
        )
    fields |= {"uri": arguments.uri} | login_fields(arguments)
    if arguments.experiment is not None:
        fields["experiment"] = arguments.experiment
    if arguments.raw:
        fields["raw_evidence"] = True
    if arguments.report:
        fields["report"] = True
    if arguments.traces:
        fields["traces"] = True
    settings = MlflowTracking.of(fields, at="tracking")
    outputs = arguments.outputs or _outputs(directory.path)
    make_tracker(settings, outputs).check_own()
    sweep = given if given.resolve().name == manifest.sweep else None
    return Export(directory, manifest, Target(settings, outputs), sweep)


def _by_target(exports: Sequence[Export]) -> dict[Target, list[Export]]:
    grouped: dict[Target, list[Export]] = {}
    for export in exports:
        grouped.setdefault(export.target, []).append(export)
    return grouped


def _log(console: Console, tracker: Tracker, export: Export) -> TrackedRun | None:
    """Log one run and say what that did; None where it failed."""
    path = export.directory.path
    try:
        tasks = planned_tasks_or_none(export.manifest)
        run = tracker.log(export.directory, tasks, run_report(export.directory, tasks))
    except TrackingError as error:
        console.print(Text(f"not logged  {path}: {error}", style="red"))
        return None
    console.print(Text(f"{run.change:<10}  {path}{_remark(export.manifest)}"))
    if export.target.settings.traces and tasks is None:
        console.print(Text("            without traces: its tasks are not here"))
    return run


def _outputs(run: Path) -> Path:
    """The nearest folder above a run that has a database or the usual name, else the usual one.

    What the run itself says about it is no reason: somebody else may have written that.
    """
    for parent in run.absolute().parents:
        if os.path.lexists(parent / DATABASE) or parent.name == OUTPUTS:
            return parent
    return Path(OUTPUTS).absolute()


def _remark(manifest: Manifest) -> str:
    if manifest.status is RunStatus.RUNNING:
        return " (it never ended: killed, or still at work; export it again once it has)"
    return "" if manifest.status is RunStatus.COMPLETE else f" ({manifest.status})"
