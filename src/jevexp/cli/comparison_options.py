"""The options of every verb that compares: how sure, how much matters, and the bootstrap."""

import argparse
import math
from collections.abc import Callable

from jevexp.analysis.metric import Options


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add them to a verb's parser."""
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


def options_of(arguments: argparse.Namespace) -> Options:
    """The options that were given."""
    return Options(
        alpha=arguments.alpha,
        margin=arguments.margin,
        draws=arguments.draws,
        seed=arguments.seed,
    )


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
