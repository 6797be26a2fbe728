"""The frontier of accuracy and cost, and names beside points."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from jevexp.analysis.plots.drawing import styled
from jevexp.analysis.plots.scatter import Point, frontier, place_labels


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


def placed(names: list[str], *, spread: float = 0.4) -> tuple[list[Annotation], list[Bbox]]:
    """The names of points in a row, and the boxes that they cover."""
    with styled():
        axes = Figure(figsize=(9, 6), dpi=72).add_axes((0.1, 0.1, 0.8, 0.8))
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        points = [(0.3 + spread * n / len(names), 0.5, name) for n, name in enumerate(names)]
        place_labels(axes, points)
        annotations = [text for text in axes.texts if isinstance(text, Annotation)]
        for text in annotations:
            text.update_positions(RendererAgg(648, 432, 72))  # type: ignore[no-untyped-call]
        # An annotation's own extent has its line in it.
        return annotations, [Text.get_window_extent(text) for text in annotations]


@pytest.mark.parametrize("spread", [0.0, 0.4])
@pytest.mark.parametrize("count", [1, 3, 30, 50])
def test_every_name_is_there_and_covers_no_other(count: int, spread: float) -> None:
    names = [f"WWW run {number}" for number in range(count)]
    texts, boxes = placed(names, spread=spread)

    assert [text.get_text() for text in texts] == names
    for place, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:place])


def test_a_name_far_from_its_point_has_a_line_to_it() -> None:
    texts, _ = placed([f"run {number}" for number in range(30)], spread=0)

    assert texts[0].arrow_patch is None
    assert max(map(abs, texts[-1].xyann)) > 30
    assert texts[-1].arrow_patch is not None


def test_names_are_shortened_where_there_is_no_room_for_all_of_them() -> None:
    texts, boxes = placed([f"{number} {'long ' * 5}" for number in range(90)])

    assert len(texts) == 90
    assert any(text.get_text().endswith("…") for text in texts)
    for place, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:place])
