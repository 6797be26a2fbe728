"""One metric of a pair of runs: its difference, how sure that is, and what may be said."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from jevexp.analysis.pairing import Differences, Pair
from jevexp.analysis.statistics.clustered import (
    clustered_mean,
    percentile_interval,
    resampled_sums,
)
from jevexp.analysis.statistics.interval import Interval
from jevexp.analysis.statistics.power import required_pairs, smallest_difference, smallest_mean
from jevexp.analysis.statistics.proportions import mcnemar_exact, paired_difference
from jevexp.analysis.statistics.verdict import Verdict, decide
from jevexp.harness.summary import ECE_BINS

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


def mean_difference(name: str, found: Differences, options: Options) -> Metric | None:
    """A mean of differences, tested by its cluster-robust t; None for no task."""
    import numpy as np

    if not found.values:
        return None
    mean = clustered_mean(found.values, found.clusters)
    columns = np.column_stack([found.values, np.ones(mean.n)])
    sums = resampled_sums(columns, found.clusters, draws=options.draws, seed=options.seed)
    estimates = sums[:, 0] / sums[:, 1]
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
    smallest = smallest_mean(mean.standard_error, alpha=options.alpha, power=POWER)
    sought = max(abs(mean.mean), options.margin)
    needed = math.ceil(mean.n * (smallest / sought) ** 2)
    return replace(metric, smallest_effect=smallest, tasks_needed=needed)


def accuracy(found: Differences, options: Options) -> Metric | None:
    """The difference in accuracy; None for no task.

    Its p is the larger of the exact McNemar test's, which takes tasks for independent, and the
    cluster-robust t test's, which leans on the central limit theorem: neither is fooled alone.
    For equivalence the bootstrap's interval is widened to that of Agresti and Min over clusters,
    since a bootstrap of tasks that never flip has no width.
    """
    metric = mean_difference("accuracy", found, options)
    if metric is None or metric.p is None:
        return metric
    gained, lost = found.values.count(1.0), found.values.count(-1.0)
    share = metric.clusters / metric.n
    score = paired_difference(
        gained * share, lost * share, metric.clusters, level=1 - 2 * options.alpha
    )
    bootstrap = metric.equivalence or score
    effect = max(1.0, clustered_mean(found.values, found.clusters).design_effect or 1.0)
    # One flip more than was seen: without any, nothing is known about how many there would be.
    discordance = (gained + lost + 1) / (metric.n + 1)
    sought = min(max(abs(metric.delta), options.margin), discordance)
    return replace(
        metric,
        equivalence=Interval(min(bootstrap.low, score.low), max(bootstrap.high, score.high)),
        p=max(metric.p, mcnemar_exact(gained, lost)),
        smallest_effect=smallest_difference(
            metric.n / effect, discordance, alpha=options.alpha, power=POWER
        ),
        tasks_needed=math.ceil(
            effect * required_pairs(sought, discordance, alpha=options.alpha, power=POWER)
        ),
        gained=gained,
        lost=lost,
    )


def ece_difference(pairs: Sequence[Pair], options: Options) -> Metric | None:
    """The difference in expected calibration error, with a bootstrap interval and no test.

    An absolute value a bin makes the error no mean over tasks, and biased upwards in a small
    sample, also in a resampled one. A verdict on it would claim more than is known.
    """
    import numpy as np

    answered = [pair for pair in pairs if pair.baseline.probs and pair.candidate.probs]
    if not answered:
        return None
    columns = np.zeros((len(answered), 2 * ECE_BINS + 1))
    for row, pair in zip(columns, answered, strict=True):
        for offset, record in ((0, pair.baseline), (ECE_BINS, pair.candidate)):
            top = max((record.probs or {}).values())
            row[offset + min(int(top * ECE_BINS), ECE_BINS - 1)] = top - (record.correct is True)
        row[-1] = 1
    clusters = [pair.cluster for pair in answered]
    sums = resampled_sums(columns, clusters, draws=options.draws, seed=options.seed)
    # The sample itself as one more row: one formula for the estimate and its draws.
    sums = np.vstack([columns.sum(axis=0), sums])
    errors = np.abs(sums[:, :-1])
    values = errors[:, ECE_BINS:].sum(axis=1) - errors[:, :ECE_BINS].sum(axis=1)
    values = values / sums[:, -1]
    count = len(set(clusters))
    interval = percentile_interval(values[1:], clusters=count, level=1 - options.alpha)
    return Metric("ece", float(values[0]), len(answered), count, interval)
