"""One proportion, and the difference of two that were measured on the same tasks."""

import math
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING

from jevexp.analysis.statistics.clustered import clustered_mean
from jevexp.analysis.statistics.interval import Interval

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.typing import NDArray


def wilson(successes: float, n: float, *, level: float = 0.95) -> Interval:
    """Score interval of a proportion.

    Wilson (1927), JASA 22(158), in the form of Brown, Cai and DasGupta (2001), Statistical
    Science 16(2). Both counts may be fractions, for clusters.

    Raises:
        ValueError: there is no trial, or there are more successes than trials.
    """
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} successes of {n}")
    z = two_sided_z(1 - level)
    share = successes / n
    center = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(max(0.0, center - half), min(1.0, center + half))


def clustered_wilson(
    values: "NDArray[float64]", clusters: "NDArray[intp]", *, level: float = 0.95
) -> Interval:
    """Score interval of a proportion of tasks that are not independent.

    Wilson's, with the sample size that as many independent tasks would amount to: n over the
    design effect, as Korn and Graubard (1998), Survey Methodology 24(2), do for an exact interval.
    A design effect below 1 is taken as 1. Where all values are equal it cannot be estimated; then
    every cluster counts as one observation. With clusters of one task it is `wilson`.

    Args:
        values: shape (tasks,), 1 for a success and 0 for none.
        clusters: shape (tasks,), the cluster of each.
        level: of the interval.

    Raises:
        ValueError: there is no value.
    """
    found = clustered_mean(values, clusters)
    effect = found.design_effect or found.n / found.clusters
    size = found.n / max(1.0, effect)
    return wilson(found.mean * size, size, level=level)


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Two-sided p of the hypothesis that both sides are right equally often; 1 without a flip.

    McNemar (1947), Psychometrika 12(2), exactly: given the number of tasks that one side alone
    has right, the first side's share of them is binomial with probability one half.
    """
    # Not scipy.stats, whose import takes longer than a small comparison.
    from scipy.special import bdtr

    smaller = min(only_first, only_second)
    return min(1.0, 2 * float(bdtr(smaller, only_first + only_second, 0.5)))


def paired_difference(gained: float, lost: float, n: float, *, level: float = 0.95) -> Interval:
    """Interval of the difference of two paired proportions, (gained - lost) / n.

    Agresti and Min (2005), Statistics in Medicine 24(5): the Wald interval after half
    an observation was added to each of the four cells. Unlike a bootstrap it keeps a width where
    nothing was gained or lost. The counts may be fractions, for clusters.

    Raises:
        ValueError: there is no pair.
    """
    if n <= 0:
        raise ValueError("no pairs")
    total = n + 2
    difference = gained - lost
    variance = (gained + lost + 1) - difference**2 / total
    half = two_sided_z(1 - level) * math.sqrt(variance) / total
    return Interval(
        max(-1.0, difference / total - half),
        min(1.0, difference / total + half),
    )


@cache
def two_sided_z(alpha: float) -> float:
    """The standard normal quantile that `alpha` lies beyond, half of it on each side."""
    return -NormalDist().inv_cdf(alpha / 2)
