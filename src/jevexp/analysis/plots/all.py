"""Every plot that a comparison has."""

from jevexp.analysis.comparison import Comparison
from jevexp.analysis.plots.differences import differences
from jevexp.analysis.plots.families import families
from jevexp.analysis.plots.latency import latency
from jevexp.analysis.plots.leaderboard import leaderboard
from jevexp.analysis.plots.pairwise import pairwise
from jevexp.analysis.plots.plot import Plot
from jevexp.analysis.plots.reliability import reliability
from jevexp.analysis.plots.tradeoff import tradeoff

_ALL = (leaderboard, differences, pairwise, families, reliability, tradeoff, latency)
NAMES = tuple(make.__name__ for make in _ALL)


def plots(comparison: Comparison) -> dict[str, Plot]:
    """The plots by name; one without data is left out."""
    found = (make(comparison) for make in _ALL)
    return {plot.name: plot for plot in found if plot is not None and plot.panels}
