"""`jevexp compare RUN RUN...`: which of them is better, and how sure that is."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from jevexp.analysis.compare import compare
from jevexp.analysis.report.page import write_report
from jevexp.analysis.tables import write_tables
from jevexp.cli.choose_runs import add_runs, read_chosen
from jevexp.cli.comparison_options import (
    add_force,
    add_options,
    options_of,
    report_paths,
    table_folder,
)
from jevexp.cli.comparison_view import print_comparison
from jevexp.cli.console import make_console, print_json


def main(argv: Sequence[str]) -> int:
    """Print the comparison; 0, whatever it says.

    Raises:
        InputError: a path is no run, the runs cannot be compared, or the page or a table is in the
            way of another file.
    """
    arguments = _parser().parse_args(argv)
    paths = None
    if arguments.html is not None:
        paths = report_paths(arguments.html, option="--html", force=arguments.force)
    folder = None
    if arguments.csv is not None:
        folder = table_folder(arguments.csv, force=arguments.force)
    runs = read_chosen(arguments)
    comparison = compare(runs, options_of(arguments))
    if arguments.json:
        print_json(comparison.plain())
    else:
        print_comparison(make_console(), comparison)
    if paths:
        write_report(comparison, runs, paths)
        # With --json, standard output is the numbers alone.
        make_console(stderr=arguments.json).print(Text(f"page: {paths.page}"))
    if folder:
        write_tables(comparison, folder)
        make_console(stderr=arguments.json).print(Text(f"tables: {folder}"))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jevexp compare",
        description="Hold finished runs against a baseline, the first one unless --baseline names "
        "another: differences with intervals, and what may be concluded.",
    )
    add_runs(parser)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    add_options(parser)
    parser.add_argument(
        "--html",
        nargs="?",
        type=Path,
        const=Path(),
        metavar="PATH",
        help="also write a page, as PATH or into the folder PATH (default: report.html), with its "
        "plots beside it",
    )
    parser.add_argument(
        "--csv",
        nargs="?",
        type=Path,
        const=Path("comparison"),
        metavar="FOLDER",
        help="also write tables as CSV files into FOLDER (default: comparison)",
    )
    add_force(parser)
    return parser
