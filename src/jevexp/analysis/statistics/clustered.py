"""Means over tasks of which some are wordings of one question, and so not independent.

A cluster is a paraphrase group; a task without one is a cluster of its own.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from jevexp.analysis.statistics.interval import Interval

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

# Cells of one block of resampling weights: 32 MB.
_BLOCK = 4_000_000


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


def clustered_mean(values: Sequence[float], clusters: Sequence[str]) -> ClusteredMean:
    """Mean, cluster-robust standard error and t test with (clusters - 1) degrees of freedom.

    Cameron and Miller (2015), Journal of Human Resources 50(2), for a regression on a constant.
    The p value never falls below 2^(1 - clusters), the smallest one that a sign-flip test of as
    many clusters has, so that a few lucky tasks without spread prove nothing.

    Raises:
        ValueError: there is no value, or not one cluster a value.
    """
    from scipy.stats import t

    if not values or len(values) != len(clusters):
        raise ValueError(f"{len(values)} values in {len(clusters)} clusters")
    n = len(values)
    mean = math.fsum(values) / n
    residuals: dict[str, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        residuals.setdefault(cluster, []).append(value - mean)
    count = len(residuals)
    if count == 1:
        return ClusteredMean(mean, None, 1.0, n, count, None)
    between = math.fsum(math.fsum(one) ** 2 for one in residuals.values())
    error = math.sqrt(count / (count - 1) * between) / n
    independent = math.fsum(r * r for one in residuals.values() for r in one) / (n * (n - 1))
    certain = 0.0 if mean else 1.0
    p = float(2 * t.sf(abs(mean) / error, count - 1)) if error > 0 else certain
    floor = math.ldexp(1.0, 1 - count)
    effect = error**2 / independent if error > 0 and independent > 0 else None
    return ClusteredMean(mean, error, max(p, floor), n, count, effect)


def resampled_sums(
    columns: "NDArray[float64]", clusters: Sequence[str], *, draws: int, seed: int
) -> "NDArray[float64]":
    """Column sums over `draws` samples of whole clusters, drawn with replacement.

    Davison and Hinkley (1997), "Bootstrap Methods and their Application", section 3.8: the first
    strategy for hierarchical data. Every column is summed over the same samples.

    Args:
        columns: shape (tasks, columns).
        clusters: the cluster of each task.
        draws: how many samples.
        seed: of NumPy's default generator.

    Returns:
        Shape (draws, columns).
    """
    import numpy as np

    names, members = np.unique(np.asarray(clusters), return_inverse=True)
    count = len(names)
    sums = np.zeros((count, columns.shape[1]))
    np.add.at(sums, members, columns)
    if draws * count <= _BLOCK:
        return _weights(count, draws, seed) @ sums
    return np.concatenate([part @ sums for part in _blocks(count, draws, seed)])


@lru_cache(maxsize=2)
def _weights(count: int, draws: int, seed: int) -> "NDArray[float64]":
    """How often each cluster is in each sample; kept, since every metric of a run needs the same.

    Shape (draws, count).
    """
    (weights,) = _blocks(count, draws, seed)
    weights.flags.writeable = False
    return weights


def _blocks(count: int, draws: int, seed: int) -> "Iterator[NDArray[float64]]":
    import numpy as np

    generator = np.random.default_rng(seed)
    block = max(1, _BLOCK // count)
    for start in range(0, draws, block):
        weights = np.empty((min(block, draws - start), count))
        for row in weights:
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
    from scipy.stats import norm, t

    usable = estimates[np.isfinite(estimates)]
    if clusters < 2 or not len(usable):
        return None
    quantile = t.isf((1 - level) / 2, clusters - 1)
    tail = float(norm.sf(math.sqrt(clusters / (clusters - 1)) * quantile))
    low, high = np.quantile(usable, [tail, 1 - tail])
    return Interval(float(low), float(high))
