"""How often equal models are told apart: at most as often as the level says."""

import numpy as np
import pytest

from jevexp.analysis.metric import Options, accuracy, mean_difference
from jevexp.analysis.pairing import Differences
from jevexp.analysis.statistics.verdict import Verdict

SIMULATIONS = 250
OPTIONS = Options(draws=200)
# Two standard errors above the level.
MOST = 0.05 + 2 * (0.05 * 0.95 / SIMULATIONS) ** 0.5


def alarms(size: int, *, test: str) -> float:
    """Share of pairs of equal models told apart: 40 questions in `size` wordings, all alike."""
    generator = np.random.default_rng(11)
    clusters = [str(number // size) for number in range(40 * size)]
    told_apart = 0
    for _ in range(SIMULATIONS):
        if test == "accuracy":
            drawn = generator.choice([-1.0, 0.0, 1.0], p=[0.2, 0.6, 0.2], size=40)
            metric = accuracy(Differences(np.repeat(drawn, size).tolist(), clusters), OPTIONS)
        else:
            drawn = generator.normal(scale=0.2, size=40)
            metric = mean_difference(
                "brier", Differences(np.repeat(drawn, size).tolist(), clusters), OPTIONS
            )
        assert metric is not None
        assert metric.p is not None
        told_apart += metric.judged(metric.p, OPTIONS).verdict in {Verdict.BETTER, Verdict.WORSE}
    return told_apart / SIMULATIONS


@pytest.mark.parametrize("test", ["accuracy", "brier"])
@pytest.mark.parametrize("size", [1, 4])
def test_equal_models_are_told_apart_no_more_often_than_the_level(size: int, test: str) -> None:
    assert alarms(size, test=test) <= MOST


def test_a_real_difference_is_found_with_the_power_that_is_claimed() -> None:
    generator = np.random.default_rng(12)
    clusters = [str(number) for number in range(165)]
    found = 0
    for _ in range(200):
        drawn = generator.choice([-1.0, 0.0, 1.0], p=[0.05, 0.8, 0.15], size=165)
        metric = accuracy(Differences(drawn.tolist(), clusters), OPTIONS)
        assert metric is not None
        assert metric.p is not None
        found += metric.judged(metric.p, OPTIONS).verdict == Verdict.BETTER

    assert 0.7 < found / 200 < 0.88
