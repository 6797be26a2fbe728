"""Plots become figures: one a panel for the page, one of all panels for files."""

import math
from typing import TYPE_CHECKING

from jevexp.analysis.plots.plot import Panel, Plot
from jevexp.analysis.plots.style import DPI, INK, TEXT
from jevexp.analysis.text import shortened, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TITLE = 28
_GAP = 24
_COLUMNS = 3
_LETTER = 7.2


def panel_figure(panel: Panel) -> "Figure":
    """One panel without its title, which the page says in words."""
    figure = _figure(panel.width, panel.height)
    _add(figure, panel, left=0, top=0)
    return figure


def plot_figure(plot: Plot) -> "Figure":
    """All panels with their titles, at most three side by side."""
    count = len(plot.panels)
    columns = 2 if count == 4 else min(count, _COLUMNS)
    width = max(panel.width for panel in plot.panels)
    height = max(panel.height for panel in plot.panels) + _TITLE
    lines = math.ceil(count / columns)
    figure = _figure(columns * width + (columns + 1) * _GAP, lines * height + (lines + 1) * _GAP)
    for place, panel in enumerate(plot.panels):
        line, column = divmod(place, columns)
        left = _GAP + column * (width + _GAP)
        top = _GAP + line * (height + _GAP)
        size = figure.get_size_inches() * DPI
        figure.text(
            (left + 8) / size[0], 1 - top / size[1],
            shortened(visible(panel.title), int(panel.width / _LETTER)),
            fontsize=TEXT, fontweight="bold", color=INK, va="top",
        )  # fmt: skip
        _add(figure, panel, left=left, top=top + _TITLE)
    return figure


def _figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width / DPI, height / DPI), dpi=DPI)


def _add(figure: "Figure", panel: Panel, *, left: float, top: float) -> None:
    width, height = figure.get_size_inches() * DPI
    around = panel.margins
    axes = figure.add_axes(
        (
            (left + around.left) / width,
            1 - (top + panel.height - around.bottom) / height,
            (panel.width - around.left - around.right) / width,
            (panel.height - around.top - around.bottom) / height,
        )
    )
    axes.patch.set_visible(False)
    panel.draw(axes)
