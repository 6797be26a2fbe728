"""Numbers on a command line: what is accepted."""

import argparse
import math
from collections.abc import Callable


def number(what: str, allowed: Callable[[float], bool]) -> Callable[[str], float]:
    """A reader of numbers that are `what` says, such as "above 0"."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not allowed(value):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number {what}")
        return value

    return read


def whole(least: int) -> Callable[[str], int]:
    """A reader of whole numbers from `least` on."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least}")
        return int(text)

    return read
