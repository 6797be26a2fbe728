"""Total variation distance."""

import pytest

from jevexp.analysis.statistics.distance import total_variation


def test_it_is_half_the_sum_of_differences() -> None:
    assert total_variation({"no": 0.1, "yes": 0.9}, {"no": 0.75, "yes": 0.25}) == pytest.approx(
        0.65
    )


def test_equal_distributions_are_at_zero_and_disjoint_ones_at_one() -> None:
    assert total_variation({"a": 0.5, "b": 0.5}, {"b": 0.5, "a": 0.5}) == 0
    assert total_variation({"a": 1.0}, {"b": 1.0}) == 1
