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
# Where a name is tried, in pixels from its point: how it is aligned, then across and up.
_PLACES = (
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
# How far a name may reach beyond the right end of the axes.
_SPARE = 12.0

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
    for corners in lines:
        (x0, y0), (x1, y1) = axes.transData.transform(corners)
        taken.append((x0 - 1, y0 - 1, x1 + 1, y1 + 1))
    for (x, y), (left, up, name) in zip(pixels, points, strict=True):
        text = shortened(visible(name), _MOST_LETTERS)
        for align, across, above in _PLACES:
            box = _box(x + across, y + above, len(text) * _LETTER, align)
            inside = frame.x0 <= box[0] and box[2] <= frame.x1 + _SPARE and frame.y0 <= box[1]
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                axes.annotate(
                    text, (left, up), (across, above), textcoords="offset points", ha=align,
                    va="center", fontsize=SMALL, color=INK, zorder=4,
                )  # fmt: skip
                break


def _box(x: float, y: float, width: float, align: str) -> Box:
    start = x - {"left": 0.0, "center": 0.5, "right": 1.0}[align] * width
    return (start, y - _LINE / 2, start + width, y + _LINE / 2)


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
