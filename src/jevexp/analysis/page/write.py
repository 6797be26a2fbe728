"""The page and its plots on disk."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jevexp.analysis.comparison import Comparison
from jevexp.analysis.page.render import render
from jevexp.analysis.plots.all import NAMES, plots
from jevexp.analysis.plots.files import SUFFIXES, write_plot, write_table
from jevexp.analysis.plots.flips import COLUMNS as FLIP_COLUMNS
from jevexp.analysis.plots.flips import FLIPS, flip_rows
from jevexp.analysis.plots.mistakes import COLUMNS as MISTAKE_COLUMNS
from jevexp.analysis.plots.mistakes import MISTAKES, mistake_rows
from jevexp.analysis.runs import FinishedRun
from jevexp.errors import InputError
from jevexp.untrusted.writing import Folder, make_folders

PAGE = "report.html"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page is; its plots are in a folder beside it."""

    page: Path

    @property
    def plots(self) -> Path:
        """`plots` beside report.html, `<name>-plots` beside any other page."""
        stem = self.page.stem
        return self.page.with_name("plots" if self.page.name == PAGE else f"{stem}-plots")

    def files(self) -> Iterator[Path]:
        """Every file that a report may consist of."""
        yield self.page
        yield from (self.plots / FLIPS, self.plots / MISTAKES)
        for name in NAMES:
            yield from (self.plots / f"{name}{suffix}" for suffix in SUFFIXES)

    def existing(self) -> Iterator[Path]:
        """Those of them that are there, also as links that lead nowhere."""
        return (path for path in self.files() if path.exists() or path.is_symlink())


def write_report(comparison: Comparison, runs: Sequence[FinishedRun], place: Place) -> None:
    """Write the page, the plots with their data, and all flips; what an earlier report left goes.

    Raises:
        InputError: a file cannot be written.
    """
    found = plots(comparison)
    document = render(comparison, runs, found, data=place.plots.name)
    try:
        make_folders(place.page.parent)
        with (
            Folder.open(place.page.parent) as folder,
            folder.below(place.plots.name) as data,
        ):
            old = [(folder if path == place.page else data, path.name) for path in place.files()]
            # Nothing is removed before everything may be.
            for there, name in [(there, name) for there, name in old if there.check(name)]:
                there.remove(name)
            for plot in found.values():
                write_plot(plot, data)
            if comparison.pairs:
                write_table(data, FLIPS, FLIP_COLUMNS, flip_rows(comparison))
            else:
                write_table(data, MISTAKES, MISTAKE_COLUMNS, mistake_rows(comparison))
            # Last: where the page is, everything that it speaks of is too.
            folder.replace(place.page.name, document.encode())
    except OSError as error:
        raise InputError(f"{error.filename or place.page}: {error.strerror}") from error
