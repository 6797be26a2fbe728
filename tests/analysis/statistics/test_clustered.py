"""Clustered means: closed forms, seeds, and what dependence does."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from jevexp.analysis.statistics.clustered import clustered_mean

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
