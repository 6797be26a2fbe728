"""Proportions against scipy and published worked examples."""

import math

import pytest
from scipy.stats import binomtest

from jevexp.analysis.statistics.proportions import mcnemar_exact, paired_difference, wilson


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (7, 10), (10, 10), (69, 72)])
def test_wilson_is_scipys(successes: int, n: int) -> None:
    expected = binomtest(successes, n).proportion_ci(0.95, method="wilson")

    assert wilson(successes, n) == pytest.approx((expected.low, expected.high))


def test_a_proportion_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="0 successes of 0"):
        wilson(0, 0)


@pytest.mark.parametrize(("first", "second", "p"), [(0, 0, 1.0), (3, 1, 0.625), (0, 6, 2 / 64)])
def test_mcnemar_is_twice_the_smaller_tail_of_a_fair_coin(
    first: int, second: int, p: float
) -> None:
    assert mcnemar_exact(first, second) == pytest.approx(p)
    assert mcnemar_exact(second, first) == pytest.approx(p)


def test_a_paired_difference_is_the_closed_form() -> None:
    half = 1.959964 * math.sqrt(11 - 36 / 102) / 102
    assert paired_difference(8, 2, 100) == pytest.approx((6 / 102 - half, 6 / 102 + half))


def test_no_flip_leaves_a_width_that_shrinks_with_more_pairs() -> None:
    few, many = paired_difference(0, 0, 10), paired_difference(0, 0, 1000)

    assert few.high > 0.1 > many.high > 0
