"""Means over tasks of which some are wordings of one question, and so not independent.

A cluster is a paraphrase group; a task without one is a cluster of its own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.typing import NDArray


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

    Raises:
        ValueError: there is no value, or not one cluster a value.
    """
    import numpy as np
    from scipy.special import stdtr

    n = len(values)
    if not n or n != len(clusters):
        raise ValueError(f"{n} values in {len(clusters)} clusters")
    found = np.asarray(values, dtype=float)
    members = np.unique(np.asarray(clusters), return_inverse=True)[1]
    mean = float(found.mean())
    # Rounding must not make a spread where all values are equal.
    residuals = np.zeros(n) if (found == found[0]).all() else found - mean
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
