"""The terminal as all verbs use it."""

import sys
from io import TextIOWrapper

from jevexp.domain.json import JSON, dumps
from jevexp.untrusted.console import SafeConsole
from jevexp.untrusted.text import printable_json

# Where nobody set a width, as in a file or a pipe: wide enough for the tables.
_PLAIN_WIDTH = 120


def make_console(*, stderr: bool = False) -> SafeConsole:
    """A console on standard output, or on standard error."""
    width = None if (sys.stderr if stderr else sys.stdout).isatty() else _PLAIN_WIDTH
    return SafeConsole(width=width, soft_wrap=True, stderr=stderr)


def print_json(value: JSON) -> None:
    """Print a document on standard output, alone, so that a program can read it."""
    print(printable_json(dumps(value, indent=2)))


def print_whatever_the_encoding() -> None:
    """Let output that cannot show a character spell it out instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
