"""The interval of a median against scipy's."""

import numpy as np
import pytest
from scipy.stats import quantile_test

from jevexp.analysis.statistics.quantiles import median_interval


@pytest.mark.parametrize("n", [6, 7, 10, 48, 231])
def test_it_is_the_one_of_scipys_quantile_test(n: int) -> None:
    sample = np.sort(np.random.default_rng(n).gamma(2.0, size=n))
    expected = quantile_test(sample, p=0.5).confidence_interval(0.95)

    assert median_interval(sample) == pytest.approx((expected.low, expected.high))


def test_five_values_have_no_interval_at_this_level() -> None:
    assert median_interval(np.arange(5.0)) is None
    assert median_interval(np.arange(5.0), level=0.9) == (0, 4)
    assert median_interval(np.asarray([])) is None
