"""The plots as the page shows them: each panel an SVG of its own, so that they can wrap."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from jevexp.analysis.plots.figure import panel_figure
from jevexp.analysis.plots.plot import WIDTH, Plot
from jevexp.analysis.plots.style import styled
from jevexp.analysis.plots.svg import inline_svg


@dataclass(frozen=True, slots=True)
class PanelView:
    """One picture; a wide one gets a box that scrolls on a narrow screen."""

    key: str
    title: str
    svg: Markup
    wide: bool


@dataclass(frozen=True, slots=True)
class FigureView:
    """One plot."""

    name: str
    title: str
    note: str | None
    panels: Sequence[PanelView]


def figures_of(plots: Mapping[str, Plot]) -> dict[str, FigureView]:
    """Draw them."""
    with styled(), warnings.catch_warnings():
        # Text stays text: the browser has the letters that this font lacks.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        return {name: _figure(plot) for name, plot in plots.items()}


def _figure(plot: Plot) -> FigureView:
    panels = [
        PanelView(
            panel.key,
            panel.title,
            # Built by a serializer of XML, which escapes every text.
            Markup(  # noqa: S704
                inline_svg(panel_figure(panel), alt=panel.alt, prefix=f"{plot.name}-{number}-")
            ),
            panel.width > WIDTH,
        )
        for number, panel in enumerate(plot.panels)
    ]
    return FigureView(plot.name, plot.title, plot.note, panels)
