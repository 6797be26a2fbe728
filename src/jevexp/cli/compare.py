"""`jevexp compare`: hold finished runs against a baseline and say what may be concluded."""

import argparse
import math
from collections.abc import Callable, Sequence

from jevexp.analysis.compare import compare
from jevexp.analysis.metric import Options
from jevexp.cli.choose_runs import add_runs, read_chosen
from jevexp.cli.comparison_view import print_comparison
from jevexp.cli.console import make_console, print_json


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
    comparison = compare(read_chosen(arguments), options)
    if arguments.json:
        print_json(comparison.plain())
        return 0
    print_comparison(make_console(), comparison)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jevexp compare",
        description="Hold finished runs against a baseline, the first one unless --baseline names "
        "another: differences with intervals, and what may be concluded.",
    )
    add_runs(parser)
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
