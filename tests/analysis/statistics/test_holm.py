"""Holm's adjustment."""

import pytest

from jevexp.analysis.statistics.holm import holm


def test_it_multiplies_by_the_number_of_hypotheses_that_are_left() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_one_test_is_left_alone_and_none_exceeds_one() -> None:
    assert holm([0.03]) == [0.03]
    assert holm([0.9, 0.8]) == [1, 1]
    assert holm([]) == []
