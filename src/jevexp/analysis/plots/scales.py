"""Axes on which equal ratios are equally far apart."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Nearly equal runs must not look far apart: half a decade at least.
_LEAST_RATIO = 3.0
_MOST_TICKS = 5


def logarithmic(axes: "Axes", values: Iterable[float]) -> None:
    """Make the horizontal axis logarithmic, with room around the values, all above zero."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    found = sorted(values)
    low, high = found[0], found[-1]
    spread = max(high / low, _LEAST_RATIO) ** 0.5 * 1.25
    middle = (low * high) ** 0.5
    axes.set_xscale("log")
    axes.set_xlim(middle / spread, middle * spread)
    axes.xaxis.set_major_locator(FixedLocator(_ticks(middle / spread, middle * spread)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between two: 1, 2 and 5 of each decade, or the decades alone, or some."""
    import math

    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) <= _MOST_TICKS:
            return inside
    return inside[:: len(inside) // _MOST_TICKS + 1]
