"""Tests, their adjustment, and verdicts."""

import pytest

from jevexp.analysis.intervals import Interval
from jevexp.analysis.verdicts import Verdict, decide, holm, mcnemar_exact

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
    assert verdict(CLOSE, clusters=20) == Verdict.EQUIVALENT
    assert verdict(CLOSE, clusters=19) == Verdict.INCONCLUSIVE


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


@pytest.mark.parametrize(("first", "second", "p"), [(0, 0, 1.0), (3, 1, 0.625), (0, 6, 2 / 64)])
def test_mcnemar_is_twice_the_smaller_tail_of_a_fair_coin(
    first: int, second: int, p: float
) -> None:
    assert mcnemar_exact(first, second) == pytest.approx(p)
    assert mcnemar_exact(second, first) == pytest.approx(p)


def test_it_multiplies_by_the_number_of_hypotheses_that_are_left() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_one_test_is_left_alone_and_none_exceeds_one() -> None:
    assert holm([0.03]) == [0.03]
    assert holm([0.9, 0.8]) == [1, 1]
    assert holm([]) == []


def test_limits_belong_to_the_verdict() -> None:
    assert verdict(ABOVE, p=0.05) == Verdict.BETTER
    assert verdict(Interval(-0.1, -0.02), p=0.05) == Verdict.WORSE
    assert verdict(Interval(-0.1, -0.02), p=0.05, higher=False) == Verdict.BETTER
    assert verdict(Interval(0.03, 0.1), p=0.050001) == Verdict.INCONCLUSIVE
