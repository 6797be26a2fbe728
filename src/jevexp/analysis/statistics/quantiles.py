"""Quantiles of a sample, and how sure they are."""

import math
from typing import TYPE_CHECKING

from jevexp.analysis.statistics.interval import Interval

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


def median_interval(ranked: "NDArray[float64]", *, level: float = 0.95) -> Interval | None:
    """Interval of the median between two order statistics, for any continuous distribution.

    Conover (1999), "Practical Nonparametric Statistics", section 3.2: how many of the values lie
    below the true median is binomial with probability one half. The level is at least the stated
    one. None where even the whole range of so few values does not reach it.

    Args:
        ranked: shape (n,), in ascending order.
        level: of the interval.
    """
    from scipy.special import bdtr, bdtrik

    n = len(ranked)
    tail = (1 - level) / 2
    if n == 0 or bdtr(0, n, 0.5) > tail:
        return None
    # The largest k with P(fewer than k + 1 of n below the median) at most the tail.
    below = math.floor(float(bdtrik(tail, n, 0.5)))
    while bdtr(below, n, 0.5) > tail:
        below -= 1
    while bdtr(below + 1, n, 0.5) <= tail:
        below += 1
    return Interval(float(ranked[below]), float(ranked[n - 1 - below]))
