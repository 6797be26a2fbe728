"""The plots of a comparison, each with the data that it shows."""

from jevexp.analysis.comparison import Comparison
from jevexp.analysis.plots.drawing import Plot
from jevexp.analysis.plots.heatmaps import families, pairwise
from jevexp.analysis.plots.intervals import differences, latency, leaderboard
from jevexp.analysis.plots.scatter import reliability, tradeoff

_ALL = (leaderboard, differences, pairwise, families, reliability, tradeoff, latency)
NAMES = tuple(make.__name__ for make in _ALL)


def plots(comparison: Comparison) -> dict[str, Plot]:
    """The plots by name; one without data is left out."""
    return {plot.name: plot for make in _ALL if (plot := make(comparison)).panels}
