"""Bootstrap samples of whole clusters, drawn once and shared by everything that is estimated.

A cluster is a paraphrase group; a task without one is a cluster of its own.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jevexp.analysis.statistics.intervals import Interval

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.typing import NDArray

# Cells of one block of weights: 160 MB. Smaller ones make the matrix product slow.
_BLOCK = 20_000_000
# Columns of one matrix product where the weights are kept.
_BATCH = 128


class Resampling:
    """`draws` samples of the clusters, with replacement.

    Davison and Hinkley (1997), "Bootstrap Methods and their Application", section 3.8: the first
    strategy for hierarchical data. Every column is summed over the same samples, so that a
    difference of two estimates is resampled as a pair. What a task does not have counts as zero in
    a column and in the column of its counts: means are ratios of two sums.
    """

    def __init__(self, members: "NDArray[intp]", *, draws: int, seed: int) -> None:
        """Sample clusters.

        Args:
            members: shape (tasks,), the cluster of each task, numbered from 0 without gaps.
            draws: how many samples.
            seed: of NumPy's default generator.
        """
        self.members = members
        self._count = int(members.max()) + 1 if len(members) else 0
        self._draws = draws
        self._seed = seed
        self._kept: list[NDArray[float64]] | None = None
        if draws * self._count <= _BLOCK:
            self._kept = list(self._blocks())

    def sums(self, parts: "Sequence[NDArray[float64]]") -> "Iterator[NDArray[float64]]":
        """Column sums of each part over every draw.

        All parts are given at once, since with many clusters the draws are too large to be kept.

        Args:
            parts: each of shape (tasks, columns).

        Returns:
            For each part shape (draws, columns).
        """
        import numpy as np

        start = 0
        while start < len(parts):
            batch: list[NDArray[float64]] = []
            width = 0
            # Without kept weights one pass has to do for everything.
            while start < len(parts) and (not batch or self._kept is None or width < _BATCH):
                batch.append(self._collapsed(parts[start]))
                width += batch[-1].shape[1]
                start += 1
            columns = np.hstack(batch)
            blocks = self._blocks() if self._kept is None else self._kept
            drawn = np.concatenate([weights @ columns for weights in blocks])
            begin = 0
            for part in batch:
                end = begin + part.shape[1]
                yield drawn[:, begin:end]
                begin = end

    def _collapsed(self, columns: "NDArray[float64]") -> "NDArray[float64]":
        """The sums of each cluster, shape (clusters, columns)."""
        import numpy as np

        return np.stack(
            [
                np.bincount(self.members, weights=column, minlength=self._count)
                for column in columns.T
            ],
            axis=1,
        )

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
