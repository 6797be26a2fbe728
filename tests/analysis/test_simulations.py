"""Verdicts on pairs whose truth is known; bench/simulations.py has many more of them."""

import math

import pytest

from jevexp.analysis.verdicts import Verdict, required_tasks
from tests.analysis.simulated import Setting, Simulation, monte_carlo_error, share

DRAWS = 300


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("tasks", [72, 232])
def test_equal_models_are_told_apart_no_more_often_than_the_level(tasks: int, size: int) -> None:
    count = 300
    found = Simulation(Setting(tasks, size), seed=11, draws=DRAWS).verdicts(count)

    most = 0.05 + 2 * monte_carlo_error(0.05, count)
    for name, counts in found.items():
        assert share(counts, Verdict.BETTER, Verdict.WORSE) <= most, name


def test_without_its_clusters_the_same_data_would_fool_the_test() -> None:
    """What the clusters are for: four wordings alike, taken for four questions."""
    blind = Setting(232, 4)
    simulation = Simulation(blind, seed=11, draws=DRAWS)
    simulation.forget_clusters()
    found = simulation.verdicts(300)["accuracy"]

    assert share(found, Verdict.BETTER, Verdict.WORSE) > 0.15


@pytest.mark.parametrize("size", [1, 2])
def test_models_that_differ_by_the_margin_are_seldom_called_equivalent(size: int) -> None:
    count = 300
    setting = Setting(1000, size, discordance=0.05, effect=0.02)
    found = Simulation(setting, seed=12, draws=DRAWS).verdicts(count)["accuracy"]

    assert share(found, Verdict.EQUIVALENT) <= 0.05 + 2 * monte_carlo_error(0.05, count)


@pytest.mark.parametrize(("size", "effect", "discordance"), [(1, 0.1, 0.2), (2, 0.1, 0.2)])
def test_a_real_difference_is_found_with_the_power_that_is_claimed(
    size: int, effect: float, discordance: float
) -> None:
    count = 1000
    factor = Setting(0, size).design_effect
    tasks = math.ceil(required_tasks(effect, discordance, design_effect=factor))
    setting = Setting(tasks + tasks % size, size, discordance=discordance, effect=effect)
    found = Simulation(setting, seed=13, draws=DRAWS).verdicts(count)["accuracy"]

    # 3 points, and what a thousand simulations are unsure of.
    assert share(found, Verdict.BETTER) == pytest.approx(
        0.8, abs=0.03 + 2 * monte_carlo_error(0.8, count)
    )
