"""What may be said about a difference: its test, the adjustment for many, and the verdict."""

from collections.abc import Sequence
from enum import StrEnum

from jevexp.analysis.statistics.intervals import Interval

# With k clusters that show nothing, a share of about 3/k may still differ unseen (Hanley and
# Lippman-Hand (1983), JAMA 249(13)): below this many, no sameness is claimed.
FEWEST_FOR_EQUIVALENCE = 20


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

    Args:
        p: adjusted for the number of comparisons.
        interval: of candidate minus baseline, at 1 - alpha.
        equivalence: the same at 1 - 2 alpha.
        clusters: how many independent ones stand behind them.
        alpha: the level of each test.
        margin: what is no difference, in the unit of the interval.
        higher_is_better: whether a larger value is the better one.
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
