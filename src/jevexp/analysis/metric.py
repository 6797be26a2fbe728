"""One metric of a pair of runs: its difference, how sure that is, and what may be said."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jevexp.analysis.statistics.clustered import clustered_mean
from jevexp.analysis.statistics.interval import Interval
from jevexp.analysis.statistics.power import required_tasks, smallest_effect, smallest_mean
from jevexp.analysis.statistics.proportions import mcnemar_exact, paired_difference
from jevexp.analysis.statistics.resampling import percentile_interval
from jevexp.analysis.statistics.verdict import Verdict, decide

if TYPE_CHECKING:
    from numpy import float64, intp
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
class Metric:
    """Candidate minus baseline in one metric, over `n` tasks in `clusters` paraphrase groups.

    `interval` is at 1 - alpha, `equivalence` at 1 - 2 alpha. `smallest_effect` is the difference
    that so many tasks show with a power of 80 %, `tasks_needed` how many would show the larger of
    the difference found and the margin; null where that is unknown. `verdict` is null for a
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

    def judged(self, p_adjusted: float, options: Options) -> "Metric":
        """The same with its adjusted p and the verdict that follows."""
        verdict = decide(
            p=p_adjusted,
            interval=self.interval,
            equivalence=self.equivalence,
            clusters=self.clusters,
            alpha=options.alpha,
            margin=options.margin,
            higher_is_better=self.name == "accuracy",
        )
        return replace(self, p_adjusted=p_adjusted, verdict=verdict)


def mean_columns(values: "NDArray[float64]") -> "NDArray[float64]":
    """The columns whose sums' ratio is the mean of the values that are not NaN: shape (n, 2)."""
    import numpy as np

    present = ~np.isnan(values)
    return np.stack([np.where(present, values, 0.0), present.astype(float)], axis=1)


def ratio(sums: "NDArray[float64]") -> "NDArray[float64]":
    """The mean of each draw of `mean_columns`, NaN where it has no value: shape (draws,)."""
    import numpy as np

    counts = np.where(sums[:, 1] > 0, sums[:, 1], np.nan)
    means: NDArray[float64] = sums[:, 0] / counts
    return means


def mean_difference(
    name: str,
    values: "NDArray[float64]",
    members: "NDArray[intp]",
    sums: "NDArray[float64]",
    options: Options,
) -> Metric | None:
    """A mean of differences, tested by its cluster-robust t; None for no task.

    Args:
        name: of the metric.
        values: shape (tasks,), candidate minus baseline, NaN where a side has none.
        members: shape (tasks,), the cluster of each task.
        sums: shape (draws, 2), of `mean_columns(values)`.
        options: level, margin.
    """
    import numpy as np

    present = ~np.isnan(values)
    if not present.any():
        return None
    mean = clustered_mean(values[present], members[present])
    estimates = ratio(sums)
    metric = Metric(
        name,
        mean.mean,
        mean.n,
        mean.clusters,
        percentile_interval(estimates, clusters=mean.clusters, level=1 - options.alpha),
        percentile_interval(estimates, clusters=mean.clusters, level=1 - 2 * options.alpha),
        p=mean.p,
    )
    if not mean.standard_error:
        return metric
    smallest = smallest_mean(
        mean.standard_error, mean.clusters - 1, alpha=options.alpha, power=POWER
    )
    sought = max(abs(mean.mean), options.margin)
    needed = math.ceil(mean.n * (smallest / sought) ** 2)
    return replace(metric, smallest_effect=smallest, tasks_needed=needed)


def accuracy_difference(
    values: "NDArray[float64]",
    members: "NDArray[intp]",
    sums: "NDArray[float64]",
    options: Options,
) -> Metric | None:
    """The difference in accuracy, with the arguments of `mean_difference`; None for no task.

    Its p is the larger of the exact McNemar test's, which takes tasks for independent, and the
    cluster-robust t test's, which leans on the central limit theorem: neither is fooled alone.
    For equivalence the bootstrap's interval is widened to that of Agresti and Min over clusters,
    since a bootstrap of tasks that never flip has no width.
    """
    import numpy as np

    metric = mean_difference("accuracy", values, members, sums, options)
    if metric is None or metric.p is None:
        return metric
    gained, lost = int((values == 1).sum()), int((values == -1).sum())
    share = metric.clusters / metric.n
    score = paired_difference(
        gained * share, lost * share, metric.clusters, level=1 - 2 * options.alpha
    )
    bootstrap = metric.equivalence or score
    present = ~np.isnan(values)
    found = clustered_mean(values[present], members[present])
    # Where nothing flips it cannot be estimated: then every cluster counts as one task.
    effect = max(1.0, found.design_effect or found.n / found.clusters)
    # One flip more than was seen: without any, nothing is known about how many there would be.
    discordance = (gained + lost + 1) / (metric.n + 1)
    sought = min(max(abs(metric.delta), options.margin), discordance)
    return replace(
        metric,
        equivalence=Interval(min(bootstrap.low, score.low), max(bootstrap.high, score.high)),
        p=max(metric.p, mcnemar_exact(gained, lost)),
        smallest_effect=smallest_effect(
            metric.n,
            metric.clusters,
            discordance,
            design_effect=effect,
            alpha=options.alpha,
            power=POWER,
        ),
        tasks_needed=math.ceil(
            required_tasks(
                sought, discordance, design_effect=effect, alpha=options.alpha, power=POWER
            )
        ),
        gained=gained,
        lost=lost,
    )
