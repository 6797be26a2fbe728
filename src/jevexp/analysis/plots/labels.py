"""Names beside points, where there is room for them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jevexp.analysis.plots.style import INK, SMALL
from jevexp.analysis.text import shortened, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LETTER = 6.4
_LINE = 14.0
_MOST_LETTERS = 26
# Where a name is tried: how it is aligned, then pixels across and up from its point.
_PLACES: Sequence[tuple[str, int, int]] = (
    ("left", 9, 0),
    ("left", 6, 15),
    ("left", 6, -15),
    ("right", -9, 0),
    ("right", -6, 15),
    ("right", -6, -15),
    ("center", 0, 16),
    ("center", 0, -16),
)
_POINT = 6.0
# How far a name may reach beyond the axes to the right and above.
_SPARE = 12.0

Place = tuple[str, int, int]
Box = tuple[float, float, float, float]


def place_labels(
    axes: "Axes",
    points: Sequence[tuple[float, float, str]],
    lines: Sequence[tuple[tuple[float, float], tuple[float, float]]] = (),
) -> None:
    """Write each name where it covers no point and no other name; leave it out where it cannot.

    Args:
        axes: with its scales and limits set.
        points: x, y and name, the more important ones first.
        lines: upright or level ones that no name should cover, as two corners each.
    """
    frame = axes.get_window_extent()
    pixels = [axes.transData.transform((x, y)) for x, y, _ in points]
    taken: list[Box] = [(x - _POINT, y - _POINT, x + _POINT, y + _POINT) for x, y in pixels]
    crossed: list[Box] = []
    for corners in lines:
        (x0, y0), (x1, y1) = axes.transData.transform(corners)
        crossed.append((x0 - 1, y0 - 1, x1 + 1, y1 + 1))
    for (x, y), (left, up, name) in zip(pixels, points, strict=True):
        text = shortened(visible(name), _MOST_LETTERS)
        width = len(text) * _LETTER
        boxes = [(place, _box(x + place[1], y + place[2], width, place[0])) for place in _PLACES]
        inside = [one for one in boxes if _within(one[1], frame.extents)]
        # Better a name that crosses a line than none.
        found = _first_free(inside, [*taken, *crossed]) or _first_free(inside, taken)
        if found:
            (align, across, above), box = found
            taken.append(box)
            axes.annotate(
                text, (left, up), (across, above), textcoords="offset points", ha=align,
                va="center", fontsize=SMALL, color=INK, zorder=4,
            )  # fmt: skip


def _first_free(
    boxes: Sequence[tuple[Place, Box]], taken: Sequence[Box]
) -> tuple[Place, Box] | None:
    return next((one for one in boxes if not any(_overlap(one[1], other) for other in taken)), None)


def _within(box: Box, frame: Sequence[float]) -> bool:
    x0, y0, x1, y1 = frame
    return x0 <= box[0] and box[2] <= x1 + _SPARE and y0 <= box[1] and box[3] <= y1 + _SPARE


def _box(x: float, y: float, width: float, align: str) -> Box:
    start = x - {"left": 0.0, "center": 0.5, "right": 1.0}[align] * width
    return (start, y - _LINE / 2, start + width, y + _LINE / 2)


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
