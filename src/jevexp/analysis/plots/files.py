"""A plot's files: SVG and PNG for papers and slides, and its data as CSV."""

import csv
import io
import warnings
from collections.abc import Iterable, Sequence

from jevexp.analysis.plots.figure import plot_figure
from jevexp.analysis.plots.plot import Cell, Plot
from jevexp.analysis.plots.style import styled
from jevexp.untrusted.writing import Folder

SUFFIXES = (".svg", ".png", ".csv")
# Twice the pixels of a screen: sharp in print.
_PNG_DPI = 144
# What a spreadsheet takes for a formula.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def write_plot(plot: Plot, folder: Folder) -> None:
    """Write `<name>.svg`, `.png` and `.csv`; the same plot gives the same bytes.

    Raises:
        OSError: a file cannot be written.
    """
    for suffix, data in zip(SUFFIXES, _pictures(plot), strict=False):
        folder.replace(f"{plot.name}{suffix}", data)
    write_table(folder, f"{plot.name}.csv", plot.columns, plot.rows)


def write_table(
    folder: Folder, name: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]
) -> None:
    """Write a CSV file: column names, then the rows; unknown is empty, numbers are unrounded.

    Raises:
        OSError: the file cannot be written.
    """
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    folder.replace(name, file.getvalue().encode())


def _cell(value: Cell) -> Cell:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULAS) else value


def _pictures(plot: Plot) -> tuple[bytes, bytes]:
    with styled(), warnings.catch_warnings():
        # A letter that the font lacks is shown as a box; the data has it.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        figure = plot_figure(plot)
        svg, png = io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None})
        figure.savefig(png, format="png", dpi=_PNG_DPI, metadata={"Software": None})
    return svg.getvalue(), png.getvalue()
