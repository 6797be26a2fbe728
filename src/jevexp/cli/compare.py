"""`jevexp compare`: hold finished runs against a baseline and say what may be concluded."""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from jevexp.analysis.compare import PairResult, compare
from jevexp.analysis.metric import Options
from jevexp.analysis.runs import FinishedRun, read_run
from jevexp.cli.comparison_view import print_pair
from jevexp.cli.console import make_console
from jevexp.cli.export import planned_tasks, run_directories
from jevexp.domain.json import dumps
from jevexp.errors import InputError
from jevexp.evidence import RunDirectory, RunStatus


def main(argv: Sequence[str]) -> int:
    """Print the comparison; 0, whatever it says.

    Raises:
        InputError: a path is no run, or the runs cannot be compared.
    """
    arguments = _parser().parse_args(argv)
    options = Options(
        alpha=arguments.alpha,
        margin=arguments.margin,
        draws=arguments.draws,
        seed=arguments.seed,
    )
    results = compare(_runs(arguments), options)
    if arguments.json:
        print(_json(results, options))
        return 0
    console = make_console()
    for result in results:
        print_pair(console, result, options)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jevexp compare",
        description="Hold finished runs against a baseline, the first one unless --baseline names "
        "another: differences with intervals, and what may be concluded.",
    )
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="a run directory, or a sweep's"
    )
    parser.add_argument("--baseline", type=Path, metavar="RUN", help="what the others are held to")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    parser.add_argument(
        "--alpha",
        type=_number("above 0 and below 0.5", lambda value: 0 < value < 0.5),
        default=0.05,
        help="the level of the tests; intervals are at 1 - ALPHA (default: %(default)s)",
    )
    parser.add_argument(
        "--margin",
        type=_number("above 0", lambda value: 0 < value < math.inf),
        default=0.02,
        help="a smaller difference is none, in the metric's unit (default: %(default)s)",
    )
    parser.add_argument(
        "--draws", type=_whole(100), default=10_000, help="of the bootstrap (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=_whole(0), default=0, help="of the bootstrap (default: %(default)s)"
    )
    return parser


def _number(what: str, allowed: Callable[[float], bool]) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not allowed(value):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number {what}")
        return value

    return read


def _whole(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least}")
        return int(text)

    return read


def _runs(arguments: argparse.Namespace) -> list[FinishedRun]:
    """The runs to compare, the baseline first."""
    given = [directory for path in arguments.runs for directory in _answered(path)]
    if arguments.baseline is not None:
        found = run_directories(arguments.baseline)
        if len(found) > 1:
            raise InputError(f"{arguments.baseline}: a baseline is one run, found {len(found)}")
        place = found[0].path.resolve()
        given = [found[0], *(run for run in given if run.path.resolve() != place)]
    return [read_run(directory, planned_tasks) for directory in given]


def _answered(path: Path) -> list[RunDirectory]:
    """The run at `path`, or those runs of a sweep that were not refused; the others are named."""
    found = run_directories(path)
    if found[0].path == path:
        return found
    answered = []
    for directory in found:
        if directory.read_manifest().status is RunStatus.REFUSED:
            Console(stderr=True, soft_wrap=True).print(
                f"left out: {directory.path} was refused", highlight=False, markup=False
            )
        else:
            answered.append(directory)
    return answered


def _json(results: Sequence[PairResult], options: Options) -> str:
    return dumps(
        {"options": asdict(options), "pairs": [asdict(result) for result in results]}, indent=2
    )
