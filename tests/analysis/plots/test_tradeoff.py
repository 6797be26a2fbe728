"""The frontier of accuracy and cost."""

from hypothesis import given
from hypothesis import strategies as st

from jevexp.analysis.plots.tradeoff import Point, frontier


def point(cost: float, accuracy: float) -> Point:
    return Point("run", "label", cost, None, accuracy, None, "#000000")


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1))
def test_the_frontier_is_what_nothing_beats(found: list[tuple[int, int]]) -> None:
    points = [point(cost, accuracy / 9) for cost, accuracy in found]
    best = {(one.cost, one.accuracy) for one in frontier(points)}

    for one in points:
        beaten = any(
            other.cost <= one.cost
            and other.accuracy >= one.accuracy
            and (other.cost, other.accuracy) != (one.cost, one.accuracy)
            for other in points
        )
        assert ((one.cost, one.accuracy) in best) is not beaten


def test_of_equally_accurate_runs_the_cheapest_is_on_the_frontier() -> None:
    assert [one.cost for one in frontier([point(3, 0.5), point(1, 0.5), point(2, 0.9)])] == [1, 2]
