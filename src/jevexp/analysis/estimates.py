"""Estimates of one run and differences of two, from answers and the bootstrap's sums."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jevexp.analysis.runs import Answers
from jevexp.analysis.statistics.intervals import (
    Interval,
    clustered_mean,
    clustered_wilson,
    paired_difference,
)
from jevexp.analysis.statistics.resampling import percentile_interval
from jevexp.analysis.statistics.verdicts import (
    Verdict,
    mcnemar_exact,
    required_tasks,
    smallest_effect,
    smallest_mean,
)
from jevexp.harness.summary import ECE_BINS

if TYPE_CHECKING:
    from numpy import bool_, float64, intp
    from numpy.typing import NDArray

POWER = 0.8


@dataclass(frozen=True, slots=True)
class Options:
    """The level of every test, the margin of no difference, and the bootstrap's draws and seed."""

    alpha: float = 0.05
    margin: float = 0.02
    draws: int = 10_000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number of one run over `n` tasks in `clusters` paraphrase groups.

    `interval` is at 1 - alpha; null where it is unknown.
    """

    value: float
    interval: Interval | None
    n: int
    clusters: int


@dataclass(frozen=True, slots=True)
class Difference:
    """Candidate minus baseline in the metric `name`, over `n` tasks in `clusters` groups.

    `interval` is at 1 - alpha, `equivalence` at 1 - 2 alpha. `smallest_effect` is the difference
    that so many tasks show with a power of 80 %, `tasks_needed` how many would show the larger of
    the observed difference and the margin; null where that is unknown. `verdict` is null for a
    metric without a test.
    """

    name: str
    delta: float
    n: int
    clusters: int
    interval: Interval | None
    equivalence: Interval | None = None
    p: float | None = None
    p_adjusted: float | None = None
    verdict: Verdict | None = None
    smallest_effect: float | None = None
    tasks_needed: int | None = None
    gained: int | None = None
    lost: int | None = None


@dataclass(frozen=True, slots=True)
class Sums:
    """What metrics need beside the answers.

    `drawn` has shape (draws, columns): the sums of a metric's columns over each draw.
    `members`, shape (tasks,), numbers the cluster of each task.
    """

    drawn: "NDArray[float64]"
    members: "NDArray[intp]"
    options: Options

    @property
    def level(self) -> float:
        """The level of the intervals."""
        return 1 - self.options.alpha

    def clusters(self, used: "NDArray[bool_]") -> int:
        """How many clusters the used tasks are from."""
        return len(set(self.members[used].tolist()))


def mean_columns(values: "NDArray[float64]") -> "NDArray[float64]":
    """The columns whose sums' ratio is the mean of the values that are not NaN: shape (n, 2)."""
    import numpy as np

    present = ~np.isnan(values)
    return np.stack([np.where(present, values, 0.0), present.astype(float)], axis=1)


def ratio(drawn: "NDArray[float64]") -> "NDArray[float64]":
    """The mean of each draw of `mean_columns`, NaN where it has no value: shape (draws,)."""
    import numpy as np

    counts = np.where(drawn[:, 1] > 0, drawn[:, 1], np.nan)
    means: NDArray[float64] = drawn[:, 0] / counts
    return means


def columns_of(parts: "Mapping[str, NDArray[float64]]") -> dict[str, slice]:
    """Where the columns of each part are, once all stand side by side."""
    places, start = {}, 0
    for name, part in parts.items():
        places[name] = slice(start, start := start + part.shape[1])
    return places


def mean_difference(name: str, values: "NDArray[float64]", sums: Sums) -> Difference | None:
    """A mean of differences, tested by its cluster-robust t; None for no task.

    Args:
        name: of the metric.
        values: shape (tasks,), candidate minus baseline, NaN where a side has none.
        sums: of `mean_columns(values)`.
    """
    import numpy as np

    options = sums.options
    present = ~np.isnan(values)
    if not present.any():
        return None
    mean = clustered_mean(values[present], sums.members[present])
    means = ratio(sums.drawn)
    difference = Difference(
        name,
        mean.mean,
        mean.n,
        mean.clusters,
        percentile_interval(means, clusters=mean.clusters, level=1 - options.alpha),
        percentile_interval(means, clusters=mean.clusters, level=1 - 2 * options.alpha),
        p=mean.p,
    )
    if not mean.standard_error:
        return difference
    smallest = smallest_mean(
        mean.standard_error, mean.clusters - 1, alpha=options.alpha, power=POWER
    )
    sought = max(abs(mean.mean), options.margin)
    needed = math.ceil(mean.n * (smallest / sought) ** 2)
    return replace(difference, smallest_effect=smallest, tasks_needed=needed)


def share_difference(name: str, values: "NDArray[float64]", sums: Sums) -> Difference | None:
    """The difference of two shares of right answers, with the arguments of `mean_difference`.

    Its p is the larger of the exact McNemar test's, which takes tasks for independent, and the
    cluster-robust t test's, which leans on the central limit theorem: neither is fooled alone.
    For equivalence the bootstrap's interval is widened to that of Agresti and Min over clusters,
    since a bootstrap of tasks that never flip has no width.
    """
    import numpy as np

    options = sums.options
    difference = mean_difference(name, values, sums)
    if difference is None or difference.p is None:
        return difference
    n, clusters = difference.n, difference.clusters
    gained, lost = int((values == 1).sum()), int((values == -1).sum())
    share = clusters / n
    score = paired_difference(gained * share, lost * share, clusters, level=1 - 2 * options.alpha)
    bootstrap = difference.equivalence or score
    present = ~np.isnan(values)
    mean = clustered_mean(values[present], sums.members[present])
    # Where nothing flips it cannot be estimated: then every cluster counts as one task.
    effect = max(1.0, mean.design_effect or mean.n / mean.clusters)
    # One flip more than was seen: without any, nothing is known about how many there would be.
    discordance = (gained + lost + 1) / (n + 1)
    sought = min(max(abs(difference.delta), options.margin), discordance)
    return replace(
        difference,
        equivalence=Interval(min(bootstrap.low, score.low), max(bootstrap.high, score.high)),
        p=max(difference.p, mcnemar_exact(gained, lost)),
        smallest_effect=smallest_effect(
            n, clusters, discordance, design_effect=effect, alpha=options.alpha, power=POWER
        ),
        tasks_needed=math.ceil(
            required_tasks(
                sought, discordance, design_effect=effect, alpha=options.alpha, power=POWER
            )
        ),
        gained=gained,
        lost=lost,
    )


def share_right(answers: Answers, used: "NDArray[bool_]", sums: Sums) -> Estimate | None:
    """The share of used tasks that are right, with Wilson's interval at the clusters' size."""
    if not used.any():
        return None
    values = answers.correct[used]
    interval = clustered_wilson(values, sums.members[used], level=sums.level)
    return Estimate(float(values.mean()), interval, len(values), sums.clusters(used))


def bin_of(confidence: "NDArray[float64]") -> "NDArray[intp]":
    """The bin of each confidence; the last one is closed."""
    import numpy as np

    return np.minimum((confidence * ECE_BINS).astype(np.intp), ECE_BINS - 1)


def gap_columns(*sides: Answers) -> "NDArray[float64]":
    """Confidence minus correctness of each task that all sides have, in the column of its bin.

    Returns:
        Shape (tasks, 10 sides + 1); the last column is 1 for such a task.
    """
    import numpy as np

    used = np.logical_and.reduce([~np.isnan(answers.confidence) for answers in sides])
    (rows,) = np.nonzero(used)
    columns = np.zeros((len(used), ECE_BINS * len(sides) + 1))
    columns[:, -1] = used
    for number, answers in enumerate(sides):
        confidence = answers.confidence[rows]
        places = number * ECE_BINS + bin_of(confidence)
        columns[rows, places] = confidence - answers.correct[rows]
    return columns


def resampled(
    sides: Sequence[Answers],
    sums: Sums,
    value_of: "Callable[[NDArray[float64], NDArray[float64]], NDArray[float64]]",
) -> tuple[float, Interval | None, int, int] | None:
    """What `value_of` the gaps and their count is, its interval, tasks and clusters."""
    import numpy as np

    columns = gap_columns(*sides)
    used = columns[:, -1] > 0
    if not used.any():
        return None
    # The sample itself as one more row: one formula for the estimate and its draws.
    rows = np.vstack([columns.sum(axis=0), sums.drawn])
    values = value_of(rows[:, :-1], np.where(rows[:, -1] > 0, rows[:, -1], np.nan))
    clusters = sums.clusters(used)
    interval = percentile_interval(values[1:], clusters=clusters, level=sums.level)
    return float(values[0]), interval, int(used.sum()), clusters


def calibration_error(gaps: "NDArray[float64]", n: "NDArray[float64]") -> "NDArray[float64]":
    """Expected calibration error of each row of bin sums: shapes (rows, 10), (rows,) to (rows,).

    The mean over the `n` tasks of |sum of (confidence - correct) in a bin|, as the harness's
    summary defines it: Guo et al. (2017), "On Calibration of Modern Neural Networks", equation 3.
    """
    import numpy as np

    errors: NDArray[float64] = np.abs(gaps).sum(axis=1) / n
    return errors
