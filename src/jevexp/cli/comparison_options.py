"""What the verbs that compare have in common: how sure, how much matters, and where files go."""

import argparse
import math
from collections.abc import Callable
from pathlib import Path

from jevexp.analysis.estimates import Options
from jevexp.analysis.report.page import PAGE, ReportPaths
from jevexp.analysis.tables import tables
from jevexp.errors import InputError
from jevexp.store.directory import MANIFEST
from jevexp.untrusted.files import RefusedPath
from jevexp.untrusted.writing import Folder


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


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add the option that allows to replace an earlier page."""
    parser.add_argument("--force", action="store_true", help="replace files that are there already")


def report_paths(path: Path, *, option: str, force: bool) -> ReportPaths:
    """The page at `path`: the file itself, or report.html in the folder.

    A name that ends with .html is a file, any other one a folder, which is made if need be.
    `option` is how the command line names it.

    Raises:
        InputError: it is a run's directory, or something is there that would be overwritten.
    """
    if (path / MANIFEST).is_file():
        raise InputError(
            f"{option} {path}: is a run, no place for this page; give a file or folder right "
            f"behind {option}, or put it last"
        )
    page = path if path.suffix == ".html" else path / PAGE
    # A folder that a person names may be a link of theirs.
    folder = page.parent.resolve() if page.parent.is_symlink() else page.parent
    return free_paths(folder / page.name, force=force)


def free_paths(page: Path, *, force: bool) -> ReportPaths:
    """The paths of a page and its plots, where nothing else is in the way.

    Raises:
        InputError: a file is there and may not be replaced, or cannot be.
    """
    paths = ReportPaths(page)
    if page.is_dir():
        raise InputError(f"{page}: is a folder; give the page another name")
    if paths.plots.exists() and not paths.plots.is_dir():
        raise InputError(f"{paths.plots}: is a file; the plots need a folder of this name")
    if not force:
        for existing in paths.existing():
            raise InputError(f"{existing}: exists; give another place, or --force to replace it")
    return paths


def table_folder(path: Path, *, force: bool) -> Path:
    """The folder of the tables, checked before anything is compared; made if need be.

    Raises:
        InputError: it is a run's directory or a file, or a table is there already.
    """
    if (path / MANIFEST).is_file():
        raise InputError(
            f"--csv {path}: is a run; put --csv last, or write --csv=PATH for another folder"
        )
    if not force:
        for table in tables():
            if (path / table.name).exists():
                raise InputError(
                    f"{path / table.name}: exists; give another folder, or --force to replace it"
                )
    try:
        # A folder that a person names may be a link of theirs.
        with Folder.named(path) as folder:
            return folder.path
    except RefusedPath as error:
        raise InputError(f"--csv {path}: {error.filename} {error.strerror}") from error
    except OSError as error:
        raise InputError(f"--csv {path}: cannot be made: {error.strerror}") from error
