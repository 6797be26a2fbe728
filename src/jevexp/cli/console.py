"""The terminal and the command line, as all verbs use them."""

import os
import sys
from argparse import ArgumentParser
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, cast

from rich import box
from rich.table import Table

from jevexp.core.json import JSON, dumps
from jevexp.errors import InputError
from jevexp.untrusted.console import SafeConsole, printable_json

# Where nobody set a width, as in a file or a pipe: wide enough for the tables.
_PLAIN_WIDTH = 120


class _ReaderMayLeave:
    """Standard output, whatever it is at the time; once nobody reads it, silence."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stdout, name)

    def write(self, text: str) -> int:
        """Write, or lose the text."""
        try:
            return sys.stdout.write(text)
        except OSError:
            self._go_silent()
            return len(text)

    def flush(self) -> None:
        """Flush, or lose what was written."""
        try:
            sys.stdout.flush()
        except OSError:
            self._go_silent()

    def _go_silent(self) -> None:
        # Or the interpreter would fail at its own flush, at the very end.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def make_run_console() -> SafeConsole:
    """A console on standard output for a run, which goes on when its pipe or terminal is closed."""
    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    return SafeConsole(width=width, soft_wrap=True, file=cast(IO[str], _ReaderMayLeave()))


def make_console(*, stderr: bool = False) -> SafeConsole:
    """A console on standard output, or on standard error."""
    width = None if (sys.stderr if stderr else sys.stdout).isatty() else _PLAIN_WIDTH
    return SafeConsole(width=width, soft_wrap=True, stderr=stderr)


def make_table(*headings: str, title: str | None = None) -> Table:
    """A table without rows; the columns whose heading begins with `>` are aligned to the right."""
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for heading in headings:
        if heading.startswith(">"):
            table.add_column(heading[1:], justify="right")
        else:
            table.add_column(heading, overflow="fold")
    return table


def make_parser(verb: str, description: str) -> ArgumentParser:
    """The parser of a verb's command line."""
    return ArgumentParser(prog=f"jevexp {verb}", description=description)


def add_outputs(parser: ArgumentParser, description: str) -> None:
    """Add the option that names the folder of runs."""
    folder = Path("outputs")
    parser.add_argument("--outputs", type=Path, default=folder, metavar="DIR", help=description)


def check_outputs(outputs: Path) -> None:
    """Refuse a folder of runs that is not there; raises InputError: it is not there."""
    if not outputs.is_dir():
        raise InputError(f"{outputs}: no such folder; run something, or give --outputs")


def print_json(value: JSON) -> None:
    """Print a document on standard output, alone, so that a program can read it."""
    print(printable_json(dumps(value, indent=2)))


def print_whatever_the_encoding() -> None:
    """Let output that cannot show a character spell it out instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
