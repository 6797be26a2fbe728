"""`jevexp report RUN`: a page on one run."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.text import Text

from jevexp.analysis.compare import describe
from jevexp.analysis.report.page import PAGE, ReportPaths, write_report
from jevexp.cli.arguments import (
    TrackedRuns,
    add_page,
    add_store,
    free_paths,
    options_of,
    read_runs,
    report_paths,
    run_id_of,
)
from jevexp.cli.console import make_console, make_parser, print_json
from jevexp.errors import InputError
from jevexp.store import RunDirectory, RunStatus
from jevexp.store.finding import run_directories


def main(argv: Sequence[str]) -> int:
    """Write the page; 0 when it is there.

    Raises InputError: it is no run, or more than one, or the page is in the way of another file.
    """
    parser = make_parser(
        "report",
        "Write one HTML page about one run, with its plots as SVG, PNG and CSV: report.html and "
        "plots/ in the run's directory.",
    )
    parser.add_argument("run", metavar="RUN", help="a run directory, or an MLflow run id")
    parser.add_argument(
        "--output", type=Path, metavar="PATH", help="write it as PATH, or into the folder PATH"
    )
    parser.add_argument("--json", action="store_true", help="also print the numbers as JSON")
    add_page(parser)
    add_store(parser)
    arguments = parser.parse_args(argv)
    with TemporaryDirectory(prefix="jevexp-run-") as copies:
        tracked = TrackedRuns(arguments, Path(copies))
        run_id = run_id_of(arguments.run)
        directories = [tracked.fetch(run_id)] if run_id else run_directories(Path(arguments.run))
        if len(directories) != 1:
            raise InputError(
                f"{arguments.run}: {len(directories)} runs; a report is of one, and "
                "`jevexp compare … --html` makes the page of several"
            )
        name = tracked.name_of(directories[0].path)
        # Reading the answers takes long; a place that cannot be written to is refused before.
        paths = _paths(directories[0], name, arguments)
        run = replace(read_runs(directories)[0], path=name)
    comparison = describe(run, options_of(arguments))
    write_report(comparison, [run], paths)
    if arguments.json:
        print_json(comparison.plain())
    else:
        make_console().print(Text(f"page: {paths.page}"))
    return 0


def _paths(directory: RunDirectory, name: Path, arguments: argparse.Namespace) -> ReportPaths:
    """Where the page goes: into the run's directory, unless another place was given."""
    if arguments.output is not None:
        return report_paths(arguments.output, option="--output", force=arguments.force)
    if name != directory.path:
        raise InputError(f"{name}: its directory is not here; give --output")
    if directory.read_manifest().status is RunStatus.RUNNING:
        # At its end the checksums would cover the page, which is to be replaceable.
        raise InputError(
            f"{directory.path}: has not ended, and its directory is still its own; give --output"
        )
    return free_paths(directory.path / PAGE, force=arguments.force)
