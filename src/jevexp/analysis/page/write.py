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
from jevexp.store.files import replace

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
        place.plots.mkdir(parents=True, exist_ok=True)
        for path in place.existing():
            path.unlink()
        for plot in found.values():
            write_plot(plot, place.plots)
        if comparison.pairs:
            write_table(place.plots / FLIPS, FLIP_COLUMNS, flip_rows(comparison))
        else:
            write_table(place.plots / MISTAKES, MISTAKE_COLUMNS, mistake_rows(comparison))
        # Last: where the page is, everything that it speaks of is too.
        replace(place.page, document.encode())
    except OSError as error:
        raise InputError(f"{error.filename or place.page}: {error.strerror}") from error
