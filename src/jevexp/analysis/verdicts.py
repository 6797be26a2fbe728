"""What may be said about a difference: tests, verdicts, and how many tasks they take."""

import math
from collections.abc import Sequence
from enum import StrEnum

from jevexp.analysis.intervals import Interval, two_sided_z

# With k clusters that show nothing, a share of about 3/k may still differ unseen (Hanley and
# Lippman-Hand (1983), JAMA 249(13)): below this many, no sameness is claimed.
FEWEST_FOR_EQUIVALENCE = 20
# The chance that a real difference is shown, wherever numbers of tasks are told.
POWER = 0.8
_POWER_Z = two_sided_z(2 * (1 - POWER))


class Verdict(StrEnum):
    """The candidate, held against the baseline."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


def decide(
    *,
    p: float,
    interval: Interval | None,
    equivalence: Interval | None,
    clusters: int,
    alpha: float,
    margin: float,
    higher_is_better: bool,
) -> Verdict:
    """Better or worse where test and interval agree; equivalent where both one-sided tests do.

    Schuirmann (1987), Journal of Pharmacokinetics and Biopharmaceutics 15(6): two one-sided tests
    at `alpha` reject exactly where the interval at 1 - 2 alpha lies within the margin.

    `p` is adjusted for the number of comparisons. `interval` is of candidate minus baseline at
    1 - alpha, `equivalence` at 1 - 2 alpha; `clusters` stand behind them. `margin` is what is no
    difference, in their unit.
    """
    if interval and p <= alpha and interval.excludes(0):
        return Verdict.BETTER if (interval.low > 0) is higher_is_better else Verdict.WORSE
    if equivalence and clusters >= FEWEST_FOR_EQUIVALENCE and equivalence.within(margin):
        return Verdict.EQUIVALENT
    return Verdict.INCONCLUSIVE


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Two-sided p of the hypothesis that both sides are right equally often; 1 without a flip.

    McNemar (1947), Psychometrika 12(2), exactly: given the number of tasks that one side alone
    has right, the first side's share of them is binomial with probability one half.
    """
    # Not scipy.stats, whose import takes longer than a small comparison.
    from scipy.special import bdtr

    smaller = min(only_first, only_second)
    return min(1.0, 2 * float(bdtr(smaller, only_first + only_second, 0.5)))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values adjusted so that the chance of any false alarm stays at the level.

    Holm (1979), Scandinavian Journal of Statistics 6(2): the k-th smallest of m is multiplied by
    m - k + 1, and none becomes smaller than one before it. Same order as given.
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def required_pairs(effect: float, discordance: float, *, alpha: float = 0.05) -> float:
    """How many independent pairs show a difference of two paired proportions.

    Connor (1987), Biometrics 43(1):
    d n = (z_alpha sqrt(D) + z_power sqrt(D - d^2)) sqrt(n), where D is the share of pairs that
    differ and d the difference. Half a pair is taken off the left side, since the exact test moves
    in whole ones: Yates (1934), Supplement to the JRSS 1(2). Without it the power is up to 5
    points short of the stated one; with it, within 3, and more where nearly all pairs that differ
    differ in one direction.

    Raises ValueError: the difference is zero, or larger than the share of pairs that differ.
    """
    size = abs(effect)
    if not 0 < size <= discordance <= 1:
        raise ValueError(f"a difference of {effect} where a share of {discordance} differs")
    spread = two_sided_z(alpha) * math.sqrt(discordance)
    spread += _POWER_Z * math.sqrt(discordance - size**2)
    root = (spread + math.sqrt(spread**2 + 2 * size)) / (2 * size)
    return root**2


def smallest_difference(pairs: float, discordance: float, *, alpha: float = 0.05) -> float | None:
    """The difference of paired proportions that needs exactly `pairs`; see `required_pairs`.

    None where so few pairs show no difference at all: not even if every one that differs differs
    in the same direction.
    """
    if not discordance or required_pairs(discordance, discordance, alpha=alpha) > pairs:
        return None
    # The formula of `required_pairs`, squared and solved for d: a d^2 - 2 b d + c = 0.
    half = 0.5 + two_sided_z(alpha) * math.sqrt(discordance * pairs)
    a = pairs**2 + _POWER_Z**2 * pairs
    b = half * pairs
    c = half**2 - _POWER_Z**2 * discordance * pairs
    return (b + math.sqrt(b**2 - a * c)) / a


def required_tasks(
    effect: float, discordance: float, *, design_effect: float, alpha: float = 0.05
) -> float:
    """How many tasks, some of them wordings of one question, show a difference of two proportions.

    Two tests have to agree: McNemar's, for which see `required_pairs`, and the cluster-robust t
    test of the mean difference, which needs (z_alpha + z_power)^2 (D - d^2) / d^2 + z_alpha^2 / 2
    tasks (Guenther (1981), The American Statistician 35(4)), times the design effect. The more
    tasks of a cluster are alike, the more the second one decides.

    Raises ValueError: the difference is zero, or larger than the share of pairs that differ.
    """
    independent = required_pairs(effect, discordance, alpha=alpha)
    spread = two_sided_z(alpha) + _POWER_Z
    mean = spread**2 * (discordance - effect**2) / effect**2 + two_sided_z(alpha) ** 2 / 2
    return max(independent, design_effect * mean)


def smallest_effect(
    tasks: int, clusters: int, discordance: float, *, design_effect: float, alpha: float = 0.05
) -> float | None:
    """The difference of two proportions that needs exactly `tasks`; see `required_tasks`.

    None where so few tasks show no difference at all, or are all of one cluster.
    """
    independent = smallest_difference(tasks, discordance, alpha=alpha)
    if independent is None or clusters < 2:
        return None
    inflated = design_effect * smallest_mean(1, clusters - 1, alpha=alpha) ** 2
    mean = math.sqrt(inflated * discordance / (tasks + inflated))
    # A difference larger than the share that differs cannot be.
    return max(independent, mean) if mean <= discordance else None


def smallest_mean(standard_error: float, degrees_of_freedom: int, *, alpha: float = 0.05) -> float:
    """The mean that a t test with this standard error finds: (t_alpha + t_power) times it.

    Bloom (1995), Evaluation Review 19(5). The error shrinks with the root of the
    number of tasks, so (result / mean)^2 times as many are needed for another mean.
    """
    from scipy.special import stdtrit

    quantiles = stdtrit(degrees_of_freedom, [1 - alpha / 2, POWER])
    return float(quantiles.sum()) * standard_error


def tasks_for_margin(
    n: int, distance: float, half_width: float, *, alpha: float = 0.05
) -> int | None:
    """How many tasks put a one-sided bound on the right side of a limit.

    Chow, Shao and Wang (2008), "Sample Size Calculations in Clinical Research", on
    non-inferiority: n ((z_alpha + z_power) error / distance)^2; the error is taken from the bound.
    None where more than a thousand million would be needed. The bound comes from `n` tasks;
    `distance` is from what was found to the limit, `half_width` to the bound at 1 - alpha.
    """
    z_alpha = two_sided_z(2 * alpha)
    reached = (z_alpha + _POWER_Z) * half_width / z_alpha
    if reached > abs(distance) * math.sqrt(1e9 / n):
        return None
    return max(n + 1, math.ceil(n * (reached / distance) ** 2))
