"""Power: closed forms, inverses, and a simulation of what is claimed."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from jevexp.analysis.verdicts import (
    mcnemar_exact,
    required_pairs,
    required_tasks,
    smallest_difference,
    smallest_effect,
    smallest_mean,
    tasks_for_margin,
)


def test_required_pairs_is_the_closed_form() -> None:
    pairs = required_pairs(0.1, 0.2)

    spread = 1.959964 * 0.2**0.5 + 0.841621 * 0.19**0.5
    assert 0.1 * pairs - 0.5 == pytest.approx(spread * pairs**0.5)
    assert pairs == pytest.approx(164.4, abs=0.5)


def test_the_smallest_difference_needs_exactly_the_pairs() -> None:
    found = smallest_difference(200, 0.2)

    assert found is not None
    assert required_pairs(found, 0.2) == pytest.approx(200)


def test_a_handful_of_pairs_shows_nothing() -> None:
    assert smallest_difference(10, 0.1) is None
    assert smallest_difference(10, 0.0) is None


def test_an_impossible_difference_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a difference of 0\.3 where a share of 0.2 differs"):
        required_pairs(0.3, 0.2)


def test_a_mean_is_found_with_the_stated_power() -> None:
    found = smallest_mean(0.1, 10**9, alpha=0.01)

    assert norm.sf(norm.isf(0.005) - found / 0.1) == pytest.approx(0.8)


def test_independent_tasks_need_what_the_exact_test_needs() -> None:
    assert required_tasks(0.1, 0.2, design_effect=1) == required_pairs(0.1, 0.2)
    assert smallest_effect(200, 200, 0.2, design_effect=1) == smallest_difference(200, 0.2)


def test_tasks_that_are_alike_need_what_the_clustered_test_needs() -> None:
    spread = norm.isf(0.025) + norm.isf(0.2)
    expected = 2 * (spread**2 * (0.2 - 0.1**2) / 0.1**2 + norm.isf(0.025) ** 2 / 2)

    assert required_tasks(0.1, 0.2, design_effect=2) == pytest.approx(expected)
    found = smallest_effect(1000, 500, 0.2, design_effect=2)
    assert found is not None
    assert required_tasks(found, 0.2, design_effect=2) == pytest.approx(1000, rel=0.01)


def test_one_cluster_shows_nothing() -> None:
    assert smallest_effect(1000, 1, 0.2, design_effect=2) is None
    assert smallest_effect(40, 2, 0.2, design_effect=20) is None


def test_the_tasks_for_a_margin_are_the_closed_form_of_non_inferiority() -> None:
    # Chow, Shao and Wang: n = ((z_alpha + z_power) sd / distance)^2, here with sd 1.
    expected = ((norm.isf(0.05) + norm.isf(0.2)) / 0.1) ** 2

    found = tasks_for_margin(100, 0.1, norm.isf(0.05) / 100**0.5)

    assert found == math.ceil(expected)


def test_at_the_limit_no_number_of_tasks_is_enough() -> None:
    assert tasks_for_margin(100, 0.0, 0.1) is None


@pytest.mark.parametrize(("effect", "discordance"), [(0.1, 0.2), (0.05, 0.1), (0.2, 0.4)])
def test_the_exact_test_has_the_power_that_is_claimed_within_three_points(
    effect: float, discordance: float
) -> None:
    pairs = math.ceil(required_pairs(effect, discordance))
    shares = [(discordance + effect) / 2, (discordance - effect) / 2, 1 - discordance]
    drawn = np.random.default_rng(3).multinomial(pairs, shares, size=2000)
    flips, times = np.unique(drawn[:, :2], axis=0, return_counts=True)
    found = [mcnemar_exact(int(first), int(second)) <= 0.05 for first, second in flips]

    assert np.average(found, weights=times) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(("clusters", "quantiles"), [(2, 14.0826), (3, 5.3633), (5, 3.7174)])
def test_few_clusters_have_a_wide_t(clusters: int, quantiles: float) -> None:
    # Student's t at 0.975 and 0.8 with 1, 2 and 4 degrees of freedom, from tables.
    assert smallest_mean(1, clusters - 1) == pytest.approx(quantiles, abs=1e-3)
    found = smallest_effect(10**6, clusters, 0.2, design_effect=300)
    inflated = 300 * quantiles**2
    assert found == pytest.approx(math.sqrt(inflated * 0.2 / (10**6 + inflated)), rel=1e-3)


def test_a_difference_of_everything_can_be_found() -> None:
    # All pairs that differ differ in one direction, and every pair differs.
    assert required_pairs(1, 1) == required_pairs(-1, 1) > 0
    for effect, discordance in ((0, 0.5), (0.5, 1.1)):
        with pytest.raises(ValueError, match="differs"):
            required_pairs(effect, discordance)
