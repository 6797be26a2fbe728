"""The terminal as all verbs use it."""

import sys

from rich.console import Console

# Where nobody set a width, as in a file or a pipe: wide enough for the tables.
_PLAIN_WIDTH = 120


def make_console() -> Console:
    """A console on standard output."""
    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    return Console(width=width, soft_wrap=True)
