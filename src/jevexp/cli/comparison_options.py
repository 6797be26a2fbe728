"""The options of every verb that compares: how sure, how much matters, and the bootstrap."""

import argparse
import math

from jevexp.analysis.metric import Options
from jevexp.cli.numbers import number, whole


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add them to the parser of a verb that gives verdicts."""
    parser.add_argument(
        "--margin",
        type=number("above 0", lambda value: 0 < value < math.inf),
        default=0.02,
        help="a smaller difference is none, in the metric's unit (default: %(default)s)",
    )
    add_statistics(parser)


def add_statistics(parser: argparse.ArgumentParser) -> None:
    """Add those that any interval needs: the level, and the bootstrap's draws and seed."""
    parser.add_argument(
        "--alpha",
        type=number("above 0 and below 0.5", lambda value: 0 < value < 0.5),
        default=0.05,
        help="the level of the tests; intervals are at 1 - ALPHA (default: %(default)s)",
    )
    parser.add_argument(
        "--draws", type=whole(100), default=10_000, help="of the bootstrap (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=whole(0), default=0, help="of the bootstrap (default: %(default)s)"
    )


def options_of(arguments: argparse.Namespace) -> Options:
    """The options that were given."""
    return Options(
        alpha=arguments.alpha,
        margin=arguments.margin,
        draws=arguments.draws,
        seed=arguments.seed,
    )
