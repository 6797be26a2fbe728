"""Names beside points."""

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from jevexp.analysis.plots.labels import place_labels
from jevexp.analysis.plots.style import styled


def placed(count: int) -> list[Annotation]:
    with styled():
        axes = Figure(figsize=(5, 4), dpi=72).add_axes((0.1, 0.1, 0.8, 0.8))
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        points = [(0.3 + 0.4 * n / count, 0.5, f"run {n}") for n in range(count)]
        place_labels(axes, points)
        return [text for text in axes.texts if isinstance(text, Annotation)]


@pytest.mark.parametrize("count", [1, 3, 30])
def test_names_cover_no_other_names(count: int) -> None:
    found = placed(count)
    boxes = [text.get_window_extent() for text in found]

    assert found[0].get_text() == "run 0"
    assert 1 <= len(found) <= count
    for place, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:place])


def test_names_without_room_are_left_out() -> None:
    assert len(placed(30)) < 30
