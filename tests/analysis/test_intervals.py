"""Estimates and intervals: closed forms, scipy's, and what dependence does."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest, quantile_test, t, ttest_1samp

from jevexp.analysis.intervals import (
    clustered_mean,
    clustered_wilson,
    median_interval,
    paired_difference,
    wilson,
)

VALUES = [0.5, -0.2, 0.9, 0.1, 0.4, -0.6, 0.3, 0.8]


def test_clusters_of_one_are_a_t_test() -> None:
    found = clustered_mean(VALUES, [str(number) for number in range(len(VALUES))])
    expected = ttest_1samp(VALUES, 0)

    assert found.p == pytest.approx(expected.pvalue)
    assert found.standard_error == pytest.approx(np.std(VALUES, ddof=1) / math.sqrt(8))
    assert found.design_effect == pytest.approx(1)


def test_clusters_of_equal_size_are_a_t_test_of_their_means() -> None:
    found = clustered_mean(VALUES, ["a", "a", "b", "b", "c", "c", "d", "d"])
    means = np.asarray(VALUES).reshape(4, 2).mean(axis=1)

    assert found.p == pytest.approx(ttest_1samp(means, 0).pvalue)


def test_repeating_every_task_proves_nothing_more() -> None:
    names = [str(number) for number in range(len(VALUES))]
    once = clustered_mean(VALUES, names)
    twice = clustered_mean(VALUES * 2, names * 2)

    assert twice.p == pytest.approx(once.p)
    assert twice.standard_error == pytest.approx(once.standard_error)


def test_a_few_tasks_without_spread_prove_nothing() -> None:
    assert clustered_mean([1.0, 1.0, 1.0], ["a", "b", "c"]).p == 0.25
    assert clustered_mean([1.0, 1.0], ["a", "a"]).p == 1


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (7, 10), (10, 10), (69, 72)])
def test_wilson_is_scipys(successes: int, n: int) -> None:
    expected = binomtest(successes, n).proportion_ci(0.95, method="wilson")

    assert wilson(successes, n) == pytest.approx((expected.low, expected.high))


def test_a_proportion_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="0 successes of 0"):
        wilson(0, 0)


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


@pytest.mark.parametrize("n", [6, 7, 10, 48, 231])
def test_it_is_the_one_of_scipys_quantile_test(n: int) -> None:
    sample = np.sort(np.random.default_rng(n).gamma(2.0, size=n))
    expected = quantile_test(sample, p=0.5).confidence_interval(0.95)

    assert median_interval(sample) == pytest.approx((expected.low, expected.high))


def test_five_values_have_no_interval_at_this_level() -> None:
    assert median_interval(np.arange(5.0)) is None
    assert median_interval(np.arange(5.0), level=0.9) == (0, 4)
    assert median_interval(np.asarray([])) is None


@pytest.mark.parametrize("clusters", [4, 5, 7, 19, 20])
def test_the_error_of_few_clusters_has_its_small_sample_factor(clusters: int) -> None:
    values = np.arange(2.0 * clusters) % 5
    sums = (values - values.mean()).reshape(clusters, 2).sum(axis=1)
    mean = clustered_mean(values, np.arange(2 * clusters) // 2)
    error = math.sqrt(clusters / (clusters - 1) * (sums**2).sum()) / (2 * clusters)

    assert mean.standard_error == pytest.approx(error)
    assert mean.p == pytest.approx(
        max(2 * t.sf(values.mean() / error, clusters - 1), 2.0 ** (1 - clusters))
    )
    assert clustered_mean(np.ones(clusters), np.arange(clusters)).p == 2.0 ** (1 - clusters)


def test_a_design_effect_below_one_makes_no_interval_narrower() -> None:
    # Four questions with one right wording of two, and one with both: an effect of 3/8.
    values = np.asarray([1.0, 0.0] * 4 + [1.0, 1.0])
    members = np.arange(10) // 2

    assert clustered_mean(values, members).design_effect == pytest.approx(0.375)
    assert clustered_wilson(values, members) == pytest.approx(wilson(6, 10))
