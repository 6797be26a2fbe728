"""`jevexp report RUN`: a page on one run."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.text import Text

from jevexp.analysis.compare import describe
from jevexp.analysis.report.page import PAGE, ReportPaths, write_report
from jevexp.analysis.runs import FinishedRun
from jevexp.cli.choose_runs import read_runs
from jevexp.cli.comparison_options import (
    add_force,
    add_options,
    free_paths,
    options_of,
    report_paths,
)
from jevexp.cli.console import make_console, print_json
from jevexp.cli.tracked import TrackedRuns, add_store, run_id_of
from jevexp.errors import InputError
from jevexp.store import RunDirectory, RunStatus
from jevexp.store.finding import run_directories


def main(argv: Sequence[str]) -> int:
    """Write the page; 0 when it is there.

    Raises:
        InputError: it is no run, or more than one, or the page is in the way of another file.
    """
    arguments = _parser().parse_args(argv)
    with TemporaryDirectory(prefix="jevexp-run-") as copies:
        tracked = TrackedRuns(arguments, Path(copies))
        run, paths = _chosen(arguments, tracked)
    comparison = describe(run, options_of(arguments))
    write_report(comparison, [run], paths)
    if arguments.json:
        print_json(comparison.plain())
    else:
        make_console().print(Text(f"page: {paths.page}"))
    return 0


def _chosen(arguments: argparse.Namespace, tracked: TrackedRuns) -> tuple[FinishedRun, ReportPaths]:
    """The run, and where its page goes; the place is looked at before the answers are read."""
    run_id = run_id_of(arguments.run)
    directories = [tracked.fetch(run_id)] if run_id else run_directories(Path(arguments.run))
    if len(directories) != 1:
        raise InputError(
            f"{arguments.run}: {len(directories)} runs; a report is of one, and "
            "`jevexp compare … --html` makes the page of several"
        )
    named = tracked.name_of(directories[0].path)
    paths = _paths(directories[0], named, arguments)
    return replace(read_runs(directories)[0], path=named), paths


def _paths(directory: RunDirectory, named: Path, arguments: argparse.Namespace) -> ReportPaths:
    """Where the page goes: into the run's directory, unless another place was given."""
    if arguments.output is not None:
        return report_paths(arguments.output, option="--output", force=arguments.force)
    if named != directory.path:
        raise InputError(f"{named}: its directory is not here; give --output")
    manifest = directory.read_manifest()
    if manifest.status is RunStatus.RUNNING:
        # At its end the checksums would cover the page, which is to be replaceable.
        raise InputError(
            f"{directory.path}: has not ended, and its directory is still its own; give --output"
        )
    return free_paths(directory.path / PAGE, force=arguments.force)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jevexp report",
        description="Write one HTML page about one run, with its plots as SVG, PNG and CSV: "
        "report.html and plots/ in the run's directory.",
    )
    parser.add_argument("run", metavar="RUN", help="a run directory, or an MLflow run id")
    parser.add_argument(
        "--output", type=Path, metavar="PATH", help="write it as PATH, or into the folder PATH"
    )
    parser.add_argument("--json", action="store_true", help="also print the numbers as JSON")
    add_options(parser)
    add_force(parser)
    add_store(parser)
    # One run is named, and not looked for.
    parser.set_defaults(where=None)
    return parser
