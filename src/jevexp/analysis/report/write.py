"""The page and its plots on disk."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jevexp.analysis.comparison import Comparison
from jevexp.analysis.plots import NAMES, plots
from jevexp.analysis.plots.drawing import Plot
from jevexp.analysis.plots.pictures import pictures
from jevexp.analysis.report.page import render
from jevexp.analysis.runs import FinishedRun
from jevexp.analysis.tables import FLIP_TABLE, MISTAKE_TABLE, write_table
from jevexp.errors import InputError
from jevexp.untrusted.writing import Folder, make_folders

PAGE = "report.html"
SUFFIXES = (".svg", ".png", ".csv")


@dataclass(frozen=True, slots=True)
class ReportPaths:
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
        yield from (self.plots / table.name for table in (FLIP_TABLE, MISTAKE_TABLE))
        for name in NAMES:
            yield from (self.plots / f"{name}{suffix}" for suffix in SUFFIXES)

    def existing(self) -> Iterator[Path]:
        """Those of them that are there, also as links that lead nowhere."""
        return (path for path in self.files() if path.exists() or path.is_symlink())


def write_report(comparison: Comparison, runs: Sequence[FinishedRun], paths: ReportPaths) -> None:
    """Write the page, the plots with their data, and all flips; what an earlier report left goes.

    Raises:
        InputError: a file cannot be written.
    """
    drawings = plots(comparison)
    document = render(comparison, runs, drawings, data=paths.plots.name)
    try:
        make_folders(paths.page.parent)
        with (
            Folder.open(paths.page.parent) as folder,
            folder.below(paths.plots.name) as data,
        ):
            old = [(folder if path == paths.page else data, path.name) for path in paths.files()]
            # Nothing is removed before everything may be.
            for there, name in [(there, name) for there, name in old if there.check(name)]:
                there.remove(name)
            for plot in drawings.values():
                write_plot(plot, data)
            table = FLIP_TABLE if comparison.pairs else MISTAKE_TABLE
            write_table(data, table.name, table.columns, table.rows(comparison))
            # Last: where the page is, everything that it speaks of is too.
            folder.replace(paths.page.name, document.encode())
    except OSError as error:
        raise InputError(f"{error.filename or paths.page}: {error.strerror}") from error


def write_plot(plot: Plot, folder: Folder) -> None:
    """Write `<name>.svg` and `.png` for papers and slides, and what they show as `.csv`.

    Raises:
        OSError: a file cannot be written.
    """
    for suffix, data in pictures(plot).items():
        folder.replace(f"{plot.name}{suffix}", data)
    write_table(folder, f"{plot.name}.csv", plot.columns, plot.rows)
