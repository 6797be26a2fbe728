"""Proportions against scipy and published worked examples."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from jevexp.analysis.statistics.proportions import (
    clustered_wilson,
    mcnemar_exact,
    paired_difference,
    wilson,
)


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


def test_without_groups_the_clustered_interval_is_wilsons() -> None:
    values = np.asarray([1.0] * 15 + [0.0] * 5)

    assert clustered_wilson(values, np.arange(20)) == pytest.approx(wilson(15, 20))


def test_asking_everything_twice_leaves_the_interval_where_it_was() -> None:
    values = np.repeat([1.0] * 15 + [0.0] * 5, 2)
    # The design effect of pairs that are alike is 2, up to the small-sample factors.
    effect = 2 * (20 / 19) * (39 / 40)

    assert clustered_wilson(values, np.arange(40) // 2) == pytest.approx(
        wilson(30 / effect, 40 / effect)
    )


def test_all_right_in_pairs_counts_the_pairs() -> None:
    assert clustered_wilson(np.ones(40), np.arange(40) // 2) == pytest.approx(wilson(20, 20))
