"""What may be said about a difference."""

from enum import StrEnum

from jevexp.analysis.statistics.interval import Interval

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
