"""Where the page of a comparison goes."""

import argparse
from pathlib import Path

from jevexp.analysis.page.write import PAGE, Place
from jevexp.errors import InputError
from jevexp.store.directory import MANIFEST


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add the option that allows to replace an earlier page."""
    parser.add_argument("--force", action="store_true", help="replace files that are there already")


def place_of(path: Path, *, option: str, force: bool) -> Place:
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
    return checked(folder / page.name, force=force)


def checked(page: Path, *, force: bool) -> Place:
    """The place of a page and its plots, where nothing else is in the way.

    Raises:
        InputError: a file is there and may not be replaced, or cannot be.
    """
    place = Place(page)
    if page.is_dir():
        raise InputError(f"{page}: is a folder; give the page another name")
    if place.plots.exists() and not place.plots.is_dir():
        raise InputError(f"{place.plots}: is a file; the plots need a folder of this name")
    if not force:
        for found in place.existing():
            raise InputError(f"{found}: exists; give another place, or --force to replace it")
    return place
