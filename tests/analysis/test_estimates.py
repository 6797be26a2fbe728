"""Estimates and differences at small samples, where factors of n - 1 are large: closed forms."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t

from jevexp.analysis.estimates import (
    Options,
    Sums,
    mean_columns,
    mean_difference,
    share_difference,
    share_right,
)
from jevexp.analysis.intervals import Resampling, paired_difference, wilson
from jevexp.analysis.runs import Answers
from jevexp.analysis.verdicts import required_tasks, smallest_effect

OPTIONS = Options(draws=400, margin=0.02)
FEW = [4, 5, 7, 19, 20]


def sums(values: NDArray[np.float64], members: NDArray[np.intp]) -> Sums:
    (drawn,) = Resampling(members, draws=OPTIONS.draws, seed=0).sums([mean_columns(values)])
    return Sums(drawn, members, OPTIONS)


def answers(correct: NDArray[np.float64]) -> Answers:
    unknown = np.full(len(correct), np.nan)
    return Answers(np.ones(len(correct), dtype=bool), correct, unknown, unknown, unknown, {})


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("clusters", FEW)
def test_a_mean_difference_is_tested_and_planned_with_the_clusters_degrees_of_freedom(
    clusters: int, size: int
) -> None:
    # Wordings of one question all have the same difference.
    means = np.arange(clusters) % 3 / 10 - 0.05
    n = size * clusters
    values = np.repeat(means, size)
    difference = mean_difference("brier_mean", values, sums(values, np.arange(n) // size))
    error = np.std(means, ddof=1) / math.sqrt(clusters)

    assert difference is not None
    assert difference.p == pytest.approx(2 * t.sf(means.mean() / error, clusters - 1))
    quantiles = t.ppf(0.975, clusters - 1) + t.ppf(0.8, clusters - 1)
    assert difference.smallest_effect == pytest.approx(quantiles * error)
    assert difference.tasks_needed == math.ceil(n * (quantiles * error / means.mean()) ** 2)


@pytest.mark.parametrize("clusters", FEW)
def test_without_flips_equivalence_is_the_score_interval_over_clusters(clusters: int) -> None:
    members = np.arange(2 * clusters) // 2
    values = np.zeros(2 * clusters)
    difference = share_difference("accuracy", values, sums(values, members))

    assert difference is not None
    assert difference.equivalence == pytest.approx(paired_difference(0, 0, clusters, level=0.9))
    discordance = 1 / (2 * clusters + 1)
    # Nothing shows how much wordings are alike: each pair of them counts as one task.
    needed = required_tasks(min(0.02, discordance), discordance, design_effect=2)
    assert difference.tasks_needed == math.ceil(needed)


@pytest.mark.parametrize("clusters", FEW)
def test_flips_of_wordings_count_once_for_equivalence(clusters: int) -> None:
    members = np.arange(2 * clusters) // 2
    values = np.asarray([1.0, 1.0] + [0.0] * (2 * clusters - 2))
    difference = share_difference("accuracy", values, sums(values, members))

    assert difference is not None
    assert difference.equivalence is not None
    # Nothing was lost, so no draw is below zero: the score interval says how far it may be.
    assert difference.equivalence.low == paired_difference(1, 0, clusters, level=0.9).low


@pytest.mark.parametrize("clusters", [5, 7, 19, 20])
def test_many_wordings_that_differ_need_no_fewer_tasks_than_independent_ones(
    clusters: int,
) -> None:
    n = 8 * clusters
    values = np.asarray([1.0, -1.0] * (n // 2 - 1) + [1.0, 0.0])
    # Both sides answer every second question alike, but not the last one.
    values[8:] *= np.repeat((np.arange(clusters - 1) + clusters + 1) % 2, 8)
    members = np.arange(n) // 8
    difference = share_difference("accuracy", values, sums(values, members))

    assert difference is not None
    assert difference.gained is not None
    assert difference.lost is not None
    discordance = (difference.gained + difference.lost + 1) / (n + 1)
    expected = smallest_effect(n, clusters, discordance, design_effect=1)
    assert expected is not None
    assert difference.smallest_effect == expected
    assert expected > (smallest_effect(n, clusters, discordance, design_effect=0.3) or 0)


@pytest.mark.parametrize("clusters", [5, 7, 19, 20])
def test_wordings_that_differ_from_each_other_count_as_independent_and_no_more(
    clusters: int,
) -> None:
    members = np.arange(2 * clusters) // 2
    # Of each question one wording is gained and one lost, but for the last: an effect below 1.
    values = np.asarray([1.0, -1.0] * (clusters - 1) + [1.0, 0.0])
    difference = share_difference("accuracy", values, sums(values, members))
    right = np.asarray([1.0, 0.0] * (clusters - 1) + [1.0, 1.0])
    estimate = share_right(answers(right), ~np.isnan(right), sums(right, members))

    assert difference is not None
    n, discordance = 2 * clusters, 2 * clusters / (2 * clusters + 1)
    assert difference.smallest_effect == smallest_effect(n, clusters, discordance, design_effect=1)
    assert difference.tasks_needed == math.ceil(
        required_tasks(max(0.02, 1 / n), discordance, design_effect=1)
    )
    assert estimate is not None
    assert estimate.interval == pytest.approx(wilson(clusters + 1, n))
    assert (estimate.n, estimate.clusters) == (n, clusters)
