"""Intervals of estimates: in closed form, and by a bootstrap.

Pure functions of numbers. Some tasks are wordings of one question, and so not independent: a
cluster is a paraphrase group; a task without one is a cluster of its own.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.typing import NDArray

# Cells of one block of weights: 160 MB. Smaller ones make the matrix product slow.
_BLOCK = 20_000_000
# Columns of one matrix product where the weights are kept.
_BATCH = 128


class Interval(NamedTuple):
    """From `low` to `high`, in the unit of what it is an interval of."""

    low: float
    high: float

    def excludes(self, value: float) -> bool:
        """Whether `value` lies outside."""
        return not self.low <= value <= self.high

    def within(self, margin: float) -> bool:
        """Whether all of it is closer to zero than `margin`."""
        return -margin < self.low and self.high < margin


@dataclass(frozen=True, slots=True)
class ClusteredMean:
    """A mean with its standard error; `p` is two-sided for the hypothesis of a mean of zero.

    `design_effect` is the variance over the one that as many independent tasks would have; None
    where either is unknown or zero.
    """

    mean: float
    standard_error: float | None
    p: float
    n: int
    clusters: int
    design_effect: float | None


def clustered_mean(
    values: "Sequence[float] | NDArray[float64]", clusters: "Sequence[str] | NDArray[intp]"
) -> ClusteredMean:
    """Mean, cluster-robust standard error and t test with (clusters - 1) degrees of freedom.

    Cameron and Miller (2015), Journal of Human Resources 50(2), for a regression on a constant.
    The p value never falls below 2^(1 - clusters), the smallest one that a sign-flip test of as
    many clusters has, so that a few lucky tasks without spread prove nothing.

    Raises ValueError: there is no value, or not one cluster a value.
    """
    import numpy as np
    from scipy.special import stdtr

    n = len(values)
    if not n or n != len(clusters):
        raise ValueError(f"{n} values in {len(clusters)} clusters")
    sample = np.asarray(values, dtype=float)
    members = np.unique(np.asarray(clusters), return_inverse=True)[1]
    mean = float(sample.mean())
    # Rounding must not make a spread where all values are equal.
    residuals = np.zeros(n) if (sample == sample[0]).all() else sample - mean
    sums = np.bincount(members, weights=residuals)
    count = len(sums)
    if count == 1:
        return ClusteredMean(mean, None, 1.0, n, count, None)
    error = math.sqrt(count / (count - 1) * float(sums @ sums)) / n
    independent = float(residuals @ residuals) / (n * (n - 1))
    certain = 0.0 if mean else 1.0
    p = 2 * float(stdtr(count - 1, -abs(mean) / error)) if error > 0 else certain
    floor = math.ldexp(1.0, 1 - count)
    effect = error**2 / independent if error > 0 and independent > 0 else None
    return ClusteredMean(mean, error, max(p, floor), n, count, effect)


def wilson(successes: float, n: float, *, level: float = 0.95) -> Interval:
    """Score interval of a proportion.

    Wilson (1927), JASA 22(158), in the form of Brown, Cai and DasGupta (2001), Statistical
    Science 16(2). Both counts may be fractions, for clusters.

    Raises ValueError: there is no trial, or there are more successes than trials.
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
    every cluster counts as one observation. With clusters of one task it is `wilson`. `values`, 1
    for a success and 0 for none, and `clusters` have shape (tasks,).

    Raises ValueError: there is no value.
    """
    mean = clustered_mean(values, clusters)
    effect = mean.design_effect or mean.n / mean.clusters
    size = mean.n / max(1.0, effect)
    return wilson(mean.mean * size, size, level=level)


def paired_difference(gained: float, lost: float, n: float, *, level: float = 0.95) -> Interval:
    """Interval of the difference of two paired proportions, (gained - lost) / n.

    Agresti and Min (2005), Statistics in Medicine 24(5): the Wald interval after half
    an observation was added to each of the four cells. Unlike a bootstrap it keeps a width where
    nothing was gained or lost. The counts may be fractions, for clusters.

    Raises ValueError: there is no pair.
    """
    if n <= 0:
        raise ValueError("no pairs")
    total = n + 2
    difference = (gained - lost) / total
    variance = (gained + lost + 1) - (gained - lost) ** 2 / total
    half = two_sided_z(1 - level) * math.sqrt(variance) / total
    return Interval(max(-1.0, difference - half), min(1.0, difference + half))


@cache
def two_sided_z(alpha: float) -> float:
    """The standard normal quantile that `alpha` lies beyond, half of it on each side."""
    return -NormalDist().inv_cdf(alpha / 2)


def median_interval(ranked: "NDArray[float64]", *, level: float = 0.95) -> Interval | None:
    """Interval of the median between two order statistics, for any continuous distribution.

    Conover (1999), "Practical Nonparametric Statistics", section 3.2: how many of the values lie
    below the true median is binomial with probability one half. The level is at least the stated
    one. None where even the whole range of so few values does not reach it. `ranked` has shape (n,)
    and ascends.
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


class Resampling:
    """`draws` samples of the clusters, with replacement.

    Davison and Hinkley (1997), "Bootstrap Methods and their Application", section 3.8: the first
    strategy for hierarchical data. Every column is summed over the same samples, so that a
    difference of two estimates is resampled as a pair. What a task does not have counts as zero in
    a column and in the column of its counts: means are ratios of two sums.
    """

    def __init__(self, members: "NDArray[intp]", *, draws: int, seed: int) -> None:
        """Sample clusters, with a seed of NumPy's default generator.

        `members`, shape (tasks,), is the cluster of each task, numbered from 0 without gaps.
        """
        self._members = members
        self._count = int(members.max()) + 1 if len(members) else 0
        self._draws = draws
        self._seed = seed
        self._kept: list[NDArray[float64]] | None = None
        if draws * self._count <= _BLOCK:
            self._kept = list(self._blocks())

    def sums(self, parts: "Sequence[NDArray[float64]]") -> "Iterator[NDArray[float64]]":
        """Column sums over every draw: (tasks, columns) to (draws, columns) for each part.

        All parts are given at once, since with many clusters the draws are too large to be kept.
        """
        import numpy as np

        start = 0
        while start < len(parts):
            batch: list[NDArray[float64]] = []
            # Without kept weights one pass has to do for everything.
            while start < len(parts) and (
                self._kept is None or sum(part.shape[1] for part in batch) < _BATCH
            ):
                batch.append(parts[start])
                start += 1
            # The sums of each cluster, shape (clusters, columns).
            collapsed = [
                np.bincount(self._members, weights=column, minlength=self._count)
                for part in batch
                for column in part.T
            ]
            columns = np.stack(collapsed, axis=1)
            blocks = self._blocks() if self._kept is None else self._kept
            drawn = np.concatenate([weights @ columns for weights in blocks])
            ends = np.cumsum([part.shape[1] for part in batch])
            yield from np.split(drawn, ends[:-1], axis=1)

    def _blocks(self) -> "Iterator[NDArray[float64]]":
        """How often each cluster is in each sample, some samples at a time."""
        import numpy as np

        generator = np.random.default_rng(self._seed)
        count = self._count
        block = max(1, _BLOCK // max(1, count))
        for start in range(0, self._draws, block):
            weights = np.zeros((min(block, self._draws - start), count))
            for row in weights if count else ():
                row[:] = np.bincount(generator.integers(count, size=count), minlength=count)
            yield weights


def percentile_interval(
    estimates: "NDArray[float64]", *, clusters: int, level: float
) -> Interval | None:
    """Expanded percentile interval of bootstrap estimates; None for fewer than two clusters.

    Hesterberg (2015), The American Statistician 69(4): a plain percentile interval is too narrow
    for small samples; quantiles further out make up for it, as t does for z. Not BCa: its
    acceleration is estimated from single clusters, and differences of right and wrong answers are
    so few-valued that this estimate is mostly noise. A draw without a value (NaN) is left out.
    """
    import numpy as np
    from scipy.special import ndtr, stdtrit

    usable = estimates[np.isfinite(estimates)]
    if clusters < 2 or not len(usable):
        return None
    quantile = -float(stdtrit(clusters - 1, (1 - level) / 2))
    tail = float(ndtr(-math.sqrt(clusters / (clusters - 1)) * quantile))
    low, high = np.quantile(usable, [tail, 1 - tail])
    return Interval(float(low), float(high))
