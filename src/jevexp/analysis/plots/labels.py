"""Names beside points: every one is there, and none covers another or a point.

Ours, since no library promises that: adjustText 1.4 moves names by forces until time is up, leaves
overlaps among five crowded names, and takes 20 seconds for fifty.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jevexp.analysis.plots.drawing import INK, MUTED, SMALL
from jevexp.untrusted.console import shortened, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy import float64
    from numpy.typing import NDArray

    # Points, or the left, lower, right and upper edges of boxes.
    Pixels = NDArray[float64]

_LINE = 14.0
# Where not all names have room, all are tried with fewer letters.
_LETTERS = (26, 14, 8, 3)
# Where a name is tried first: how it is aligned, then pixels across and up from its point.
_BESIDE: "Sequence[Place]" = (
    ("left", 9, 0),
    ("left", 6, 15),
    ("left", 6, -15),
    ("right", -9, 0),
    ("right", -6, 15),
    ("right", -6, -15),
    ("center", 0, 16),
    ("center", 0, -16),
)
_ALIGNED = {"left": 0.0, "center": 0.5, "right": 1.0}
_POINT = 6.0
# How far a name may reach beyond the axes to the right and above.
_SPARE = 12.0
# Where else names are tried: rows of the axes, this far along each.
_STEP = 8.0

Place = tuple[str, float, float]
Line = tuple[tuple[float, float], tuple[float, float]]


def place_labels(
    axes: "Axes", points: Sequence[tuple[float, float, str]], lines: Sequence[Line] = ()
) -> None:
    """Write each name where it covers no point and no other name.

    A name with no room beside its point stands further off, at the end of a line. Where the axes
    cannot hold all of them so, all are shortened; only where that is not enough either, the last
    ones are written over others.

    Args:
        axes: with its scales and limits set.
        points: x, y and name, the more important ones first.
        lines: upright or level ones that no name should cover, as two corners each.
    """
    import numpy as np

    frame = np.add(axes.get_window_extent().extents, (0, 0, _SPARE, _SPARE))
    pixels = axes.transData.transform([(x, y) for x, y, _ in points])
    taken = np.hstack([pixels - _POINT, pixels + _POINT])
    corners = axes.transData.transform(np.reshape(lines, (-1, 2))).reshape(-1, 4)
    crossed = np.add(corners, (-1, -1, 1, 1))
    names = [visible(name) for *_, name in points]
    for letters in _LETTERS:
        texts = [shortened(name, letters) for name in names]
        places, complete = _places(texts, pixels, frame, taken, crossed)
        if complete:
            break
    line = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 4}
    for text, (x, y, _), place in zip(texts, points, places, strict=True):
        align, across, up = place
        axes.annotate(
            text, (x, y), (across, up), textcoords="offset points", ha=align, va="center",
            fontsize=SMALL, color=INK, zorder=4, arrowprops=None if place in _BESIDE else line,
        )  # fmt: skip


def _places(
    texts: Sequence[str], pixels: "Pixels", frame: "Pixels", taken: "Pixels", crossed: "Pixels"
) -> tuple[list[Place], bool]:
    """A place for each text, relative to its point, and whether none covers another."""
    import numpy as np

    places: list[Place] = []
    complete = True
    for text, (x, y) in zip(texts, pixels, strict=True):
        width = _width(text)
        beside = np.asarray(
            [_box(x + across - _ALIGNED[align] * width, y + up, width)
             for align, across, up in _BESIDE]
        )  # fmt: skip
        anywhere = _rows(frame, width, x, y)
        # Better a name that crosses a line than one far from its point.
        for boxes, others in (
            (beside, np.vstack([taken, crossed])),
            (beside, taken),
            (anywhere, taken),
        ):
            if (first := _first_free(boxes, frame, others)) is not None:
                break
        else:
            boxes, first, complete = beside, 0, False
        left, low, *_ = box = boxes[first]
        places.append(
            _BESIDE[first] if boxes is beside else ("left", left - x, low + _LINE / 2 - y)
        )
        taken = np.vstack([taken, box])
    return places, complete


def _rows(frame: "Pixels", width: float, x: float, y: float) -> "Pixels":
    """Boxes of a name everywhere in the frame, the nearest to its point first."""
    import numpy as np

    lefts = np.arange(frame[0], frame[2] - width, _STEP)
    heights = np.arange(frame[1] + _LINE / 2, frame[3] - _LINE / 2, _LINE)
    left, height = (grid.ravel() for grid in np.meshgrid(lefts, heights))
    distance = np.hypot(left + width / 2 - x, height - y)
    boxes = np.stack(_box(left, height, width), axis=1)
    return boxes[np.argsort(distance, kind="stable")]


def _box(left: Any, height: Any, width: float) -> tuple[Any, Any, Any, Any]:
    return left, height - _LINE / 2, left + width, height + _LINE / 2


def _first_free(boxes: "Pixels", frame: "Pixels", taken: "Pixels") -> int | None:
    """The first box within the frame that overlaps none of the taken ones."""
    import numpy as np

    inside = (boxes[:, :2] >= frame[:2]).all(axis=1) & (boxes[:, 2:] <= frame[2:]).all(axis=1)
    low, high = boxes[:, None, :2], boxes[:, None, 2:]
    apart = (low >= taken[:, 2:]) | (high <= taken[:, :2])
    free = inside & np.all(apart.any(axis=2), axis=1)
    return int(free.argmax()) if free.any() else None


def _width(text: str) -> float:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=SMALL)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]) + 2
