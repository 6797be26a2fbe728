"""How often equal models are told apart: at most as often as the level says."""

import numpy as np
import pytest
from numpy.typing import NDArray

from jevexp.analysis.metric import (
    Metric,
    Options,
    accuracy_difference,
    mean_columns,
    mean_difference,
)
from jevexp.analysis.statistics.resampling import Resampling
from jevexp.analysis.statistics.verdict import Verdict

SIMULATIONS = 250
OPTIONS = Options(draws=200)
# Two standard errors above the level.
MOST = 0.05 + 2 * (0.05 * 0.95 / SIMULATIONS) ** 0.5


def judged(name: str, values: NDArray[np.float64], size: int) -> Metric:
    """The metric of differences of which `size` follow each other in a cluster."""
    members = np.arange(len(values)) // size
    sampling = Resampling(members, draws=OPTIONS.draws, seed=OPTIONS.seed)
    (sums,) = sampling.sums([mean_columns(values)])
    if name == "accuracy":
        metric = accuracy_difference(values, members, sums, OPTIONS)
    else:
        metric = mean_difference(name, values, members, sums, OPTIONS)
    assert metric is not None
    assert metric.p is not None
    return metric.judged(metric.p, OPTIONS)


def alarms(size: int, *, test: str) -> float:
    """Share of pairs of equal models told apart: 40 questions in `size` wordings, all alike."""
    generator = np.random.default_rng(11)
    told_apart = 0
    for _ in range(SIMULATIONS):
        if test == "accuracy":
            drawn = generator.choice([-1.0, 0.0, 1.0], p=[0.2, 0.6, 0.2], size=40)
        else:
            drawn = generator.normal(scale=0.2, size=40)
        verdict = judged(test, np.repeat(drawn, size), size).verdict
        told_apart += verdict in {Verdict.BETTER, Verdict.WORSE}
    return told_apart / SIMULATIONS


@pytest.mark.parametrize("test", ["accuracy", "brier"])
@pytest.mark.parametrize("size", [1, 4])
def test_equal_models_are_told_apart_no_more_often_than_the_level(size: int, test: str) -> None:
    assert alarms(size, test=test) <= MOST


def test_a_real_difference_is_found_with_the_power_that_is_claimed() -> None:
    generator = np.random.default_rng(12)
    found = 0
    for _ in range(200):
        drawn = generator.choice([-1.0, 0.0, 1.0], p=[0.05, 0.8, 0.15], size=165)
        found += judged("accuracy", drawn, 1).verdict == Verdict.BETTER

    assert 0.7 < found / 200 < 0.88
