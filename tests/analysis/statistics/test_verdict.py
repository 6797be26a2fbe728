"""Verdicts, one by one and over simulated runs of equal models."""

from jevexp.analysis.statistics.interval import Interval
from jevexp.analysis.statistics.verdict import Verdict, decide

CLOSE = Interval(-0.01, 0.01)
WIDE = Interval(-0.1, 0.1)
ABOVE = Interval(0.02, 0.1)


def verdict(interval: Interval, *, p: float = 0.5, clusters: int = 100, higher: bool = True) -> str:
    return decide(
        p=p,
        interval=interval,
        equivalence=interval,
        clusters=clusters,
        alpha=0.05,
        margin=0.02,
        higher_is_better=higher,
    )


def test_a_difference_needs_the_test_and_the_interval() -> None:
    assert verdict(ABOVE, p=0.01) == Verdict.BETTER
    assert verdict(ABOVE, p=0.01, higher=False) == Verdict.WORSE
    assert verdict(ABOVE, p=0.2) == Verdict.INCONCLUSIVE
    assert verdict(WIDE, p=0.01) == Verdict.INCONCLUSIVE


def test_equivalence_needs_the_whole_interval_and_enough_clusters() -> None:
    assert verdict(CLOSE) == Verdict.EQUIVALENT
    assert verdict(CLOSE, clusters=10) == Verdict.INCONCLUSIVE


def test_no_interval_is_no_verdict() -> None:
    found = decide(
        p=0.0,
        interval=None,
        equivalence=None,
        clusters=1,
        alpha=0.05,
        margin=0.02,
        higher_is_better=True,
    )

    assert found == Verdict.INCONCLUSIVE
