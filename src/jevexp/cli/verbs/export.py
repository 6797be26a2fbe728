"""`jevexp export RUN...`: log finished run directories to MLflow."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from jevexp.cli.arguments import add_login, login_fields
from jevexp.cli.console import make_console, make_parser
from jevexp.cli.tracking import run_report, sweep_comparison
from jevexp.datasets import planned_tasks_or_none
from jevexp.errors import InputError
from jevexp.settings import MlflowTracking
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.store.finding import run_directories
from jevexp.tracking import TrackedRun, Tracker, TrackingError, make_tracker
from jevexp.tracking.mlflow import export_options
from jevexp.tracking.mlflow.location import DATABASE, OUTPUTS


class Export(NamedTuple):
    """A run that is to be logged, and where it goes."""

    directory: RunDirectory
    manifest: Manifest
    settings: MlflowTracking
    outputs: Path
    sweep: Path | None


def main(argv: Sequence[str]) -> int:
    """Run the verb; 0 when every run is tracked now, 1 when one could not be logged.

    Raises InputError: a path is no run and no sweep, or the address is unusable.
    """
    parser = make_parser(
        "export", "Log finished run directories to MLflow. A run that is there is left alone."
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
    for name, description in (
        ("--raw", "also log the raw evidence"),
        ("--report", "also log the page and its plots"),
        ("--traces", "also log one trace a task"),
    ):
        parser.add_argument(name, action="store_true", help=description)
    arguments = parser.parse_args(argv)
    # All of them are checked before the first one is logged.
    by_store: dict[tuple[MlflowTracking, Path], list[Export]] = {}
    for path in arguments.runs:
        for directory in run_directories(path):
            export = _plan(directory, path, arguments)
            by_store.setdefault((export.settings, export.outputs), []).append(export)
    console = make_console()
    complete = True
    for (settings, outputs), exports in by_store.items():
        tracker = make_tracker(settings, outputs)
        tracked = [run for export in exports if (run := _log(console, tracker, export))]
        complete = complete and len(tracked) == len(exports)
        sweeps = dict.fromkeys(export.sweep for export in exports if export.sweep)
        comparisons = []
        for sweep in sweeps:
            try:
                comparison = sweep_comparison(sweep) if tracked else None
                if comparison and (run := tracker.log_comparison(comparison)):
                    console.print(Text(f"{run.change:<10}  comparison of {sweep}"))
                    comparisons.append(run)
            except (InputError, TrackingError) as error:
                console.print(Text(f"no comparison of {sweep}: {error}", style="yellow"))
                complete = complete and isinstance(error, InputError)
        if addresses := tracker.addresses(tracked, comparisons):
            console.print("", *map(Text, addresses), sep="\n")
    return 0 if complete else 1


def _plan(directory: RunDirectory, path: Path, arguments: argparse.Namespace) -> Export:
    """Send a run where the command line says, else to its folder's database; raises InputError."""
    # A run directory may be anybody's, and could name any address and any variable as its login.
    manifest = directory.read_manifest()
    fields = manifest.config.resolved["tracking"] | {"kind": "mlflow"}
    fields.pop("also", None)
    if arguments.uri is None and arguments.outputs is None and fields.get("uri") is not None:
        settings = MlflowTracking.of(fields, at="tracking")
        raise InputError(
            f"{directory.path}: its own configuration sends it to another place; confirm that with "
            f"{' '.join(export_options(settings))}"
        )
    fields |= {"uri": arguments.uri} | login_fields(arguments)
    changes = {
        "experiment": arguments.experiment,
        "raw_evidence": arguments.raw,
        "report": arguments.report,
        "traces": arguments.traces,
    }
    fields |= {name: value for name, value in changes.items() if value not in (None, False)}
    settings = MlflowTracking.of(fields, at="tracking")
    outputs = arguments.outputs or _outputs(directory.path)
    make_tracker(settings, outputs).check_own()
    sweep = path if path.resolve().name == manifest.sweep else None
    return Export(directory, manifest, settings, outputs, sweep)


def _log(console: Console, tracker: Tracker, export: Export) -> TrackedRun | None:
    """Log one run and say what that did; None where it failed."""
    path = export.directory.path
    status = export.manifest.status
    tasks = planned_tasks_or_none(export.manifest)
    try:
        run = tracker.log(export.directory, tasks, run_report(export.directory, tasks))
    except TrackingError as error:
        console.print(Text(f"not logged  {path}: {error}", style="red"))
        return None
    remark = "" if status is RunStatus.COMPLETE else f" ({status})"
    if status is RunStatus.RUNNING:
        remark = " (it never ended: killed, or still at work; export it again once it has)"
    console.print(Text(f"{run.change:<10}  {path}{remark}"))
    if export.settings.traces and tasks is None:
        console.print(Text("            without traces: its tasks are not here"))
    return run


def _outputs(run: Path) -> Path:
    """The nearest folder above a run that has a database or the usual name, else the usual one."""
    # What the run itself says about it is no reason: somebody else may have written that.
    for parent in run.absolute().parents:
        if os.path.lexists(parent / DATABASE) or parent.name == OUTPUTS:
            return parent
    return Path(OUTPUTS).absolute()
