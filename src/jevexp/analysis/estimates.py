"""Estimates of one run and differences of two, from answers and the bootstrap's sums."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from jevexp.analysis.intervals import (
    Interval,
    clustered_mean,
    clustered_wilson,
    paired_difference,
    percentile_interval,
)
from jevexp.analysis.runs import Answers
from jevexp.analysis.verdicts import (
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

    def of(self, columns: slice) -> Self:
        """The sums of some of the columns."""
        return replace(self, drawn=self.drawn[:, columns])

    @property
    def level(self) -> float:
        """The level of the intervals."""
        return 1 - self.options.alpha

    def clusters(self, used: "NDArray[bool_]") -> int:
        """How many clusters the used tasks are from."""
        return len(set(self.members[used].tolist()))


def side_by_side(
    parts: "Mapping[str, NDArray[float64]]",
) -> "tuple[NDArray[float64], dict[str, slice]]":
    """The columns of all parts, shape (tasks, columns), and where those of each part are."""
    import numpy as np

    places, start = {}, 0
    for name, part in parts.items():
        places[name] = slice(start, start := start + part.shape[1])
    return np.hstack(list(parts.values())), places


def known(values: "NDArray[float64]") -> "NDArray[bool_]":
    """Which of the values are numbers: same shape."""
    import numpy as np

    return ~np.isnan(values)


def mean_columns(values: "NDArray[float64]") -> "NDArray[float64]":
    """The columns whose sums' ratio is the mean of the values that are not NaN: shape (n, 2)."""
    import numpy as np

    present = known(values)
    return np.stack([np.where(present, values, 0.0), present.astype(float)], axis=1)


def ratio(drawn: "NDArray[float64]") -> "NDArray[float64]":
    """The mean of each draw of `mean_columns`, NaN where it has no value: shape (draws,)."""
    import numpy as np

    means: NDArray[float64] = drawn[:, 0] / np.where(drawn[:, 1] > 0, drawn[:, 1], np.nan)
    return means


def mean_difference(name: str, values: "NDArray[float64]", sums: Sums) -> Difference | None:
    """A mean of differences, tested by its cluster-robust t; None for no task.

    `values`, shape (tasks,), are candidate minus baseline, NaN where a side has none; `sums` are
    those of `mean_columns(values)`.
    """
    options, present = sums.options, known(values)
    if not present.any():
        return None
    mean = clustered_mean(values[present], sums.members[present])
    means = ratio(sums.drawn)
    interval, equivalence = (
        percentile_interval(means, clusters=mean.clusters, level=1 - tails * options.alpha)
        for tails in (1, 2)
    )
    difference = Difference(name, mean.mean, mean.n, mean.clusters, interval, equivalence, p=mean.p)
    if not mean.standard_error:
        return difference
    smallest = smallest_mean(mean.standard_error, mean.clusters - 1, alpha=options.alpha)
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
    options, present = sums.options, known(values)
    difference = mean_difference(name, values, sums)
    if difference is None or difference.p is None:
        return difference
    n, clusters = difference.n, difference.clusters
    gained, lost = int((values == 1).sum()), int((values == -1).sum())
    share = clusters / n
    score = paired_difference(gained * share, lost * share, clusters, level=1 - 2 * options.alpha)
    bootstrap = difference.equivalence or score
    mean = clustered_mean(values[present], sums.members[present])
    # Where nothing flips it cannot be estimated: then every cluster counts as one task.
    effect = max(1.0, mean.design_effect or n / clusters)
    # One flip more than was seen: without any, nothing is known about how many there would be.
    discordance = (gained + lost + 1) / (n + 1)
    sought = min(max(abs(difference.delta), options.margin), discordance)
    plan = {"design_effect": effect, "alpha": options.alpha}
    return replace(
        difference,
        equivalence=Interval(min(bootstrap.low, score.low), max(bootstrap.high, score.high)),
        p=max(difference.p, mcnemar_exact(gained, lost)),
        smallest_effect=smallest_effect(n, clusters, discordance, **plan),
        tasks_needed=math.ceil(required_tasks(sought, discordance, **plan)),
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

    Shape (tasks, 10 sides + 1); the last column is 1 for such a task.
    """
    import numpy as np

    used = np.logical_and.reduce([known(answers.confidence) for answers in sides])
    (rows,) = np.nonzero(used)
    columns = np.zeros((len(used), ECE_BINS * len(sides) + 1))
    columns[:, -1] = used
    for number, answers in enumerate(sides):
        confidence = answers.confidence[rows]
        places = number * ECE_BINS + bin_of(confidence)
        columns[rows, places] = confidence - answers.correct[rows]
    return columns


def calibration_error(*sides: Answers, sums: Sums) -> Estimate | None:
    """Expected calibration error of one side, or that of the second of two minus the first's.

    The mean over the tasks that all sides have of |sum of (confidence - correct) in a bin|, as the
    harness's summary defines it: Guo et al. (2017), "On Calibration of Modern Neural Networks",
    equation 3. None for no task. `sums` are those of
    `gap_columns(*sides)`.
    """
    import numpy as np

    columns = gap_columns(*sides)
    used = columns[:, -1] > 0
    if not used.any():
        return None
    # The sample itself as one more row: one formula for the estimate and its draws.
    rows = np.vstack([columns.sum(axis=0), sums.drawn])
    counts = np.where(rows[:, -1] > 0, rows[:, -1], np.nan)
    errors = np.abs(rows[:, :-1]).reshape(len(rows), len(sides), ECE_BINS).sum(axis=2).T / counts
    values = errors[0] if len(sides) == 1 else errors[1] - errors[0]
    clusters = sums.clusters(used)
    interval = percentile_interval(values[1:], clusters=clusters, level=sums.level)
    return Estimate(float(values[0]), interval, int(used.sum()), clusters)
