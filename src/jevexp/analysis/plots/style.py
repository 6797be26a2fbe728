"""How every plot looks: its colours, its sizes, and the settings it is drawn with.

A colour stands for a role. In files it is used as it is; on the page it becomes the style sheet's
variable of that role, which follows the reader's colour scheme.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

INK = "#1a1d21"
MUTED = "#5b636d"
RULE = "#dde1e6"
BAND = "#edf0f4"
PAPER = "#ffffff"
# Blue, green and vermilion of Okabe and Ito (2008), "Color Universal Design", darkened to a
# contrast of 4.5 on white: told apart by people who see no difference between red and green.
BASELINE = "#5b6571"
CANDIDATE = "#0067a8"
BETTER = "#00735a"
WORSE = "#b84300"
EQUIVALENT = "#6a4fb3"
INCONCLUSIVE = "#6b7280"

ROLES = {
    INK: "ink",
    MUTED: "muted",
    RULE: "rule",
    BAND: "band",
    PAPER: "paper",
    BASELINE: "baseline",
    CANDIDATE: "candidate",
    BETTER: "better",
    WORSE: "worse",
    EQUIVALENT: "equivalent",
    INCONCLUSIVE: "inconclusive",
}
VERDICTS = {
    "better": BETTER,
    "worse": WORSE,
    "equivalent": EQUIVALENT,
    "inconclusive": INCONCLUSIVE,
}

# Heat maps are light for little and dark for much, the same in both colour schemes. One hue from
# light to dark, so that people who see no difference between hues read it alike, also in print
# without colour.
LEVELS = 10
ABSENT = "#8a929c"
_FILLS = (
    "#eef3f9", "#dbe7f3", "#c3d8ec", "#a5c6e3", "#82b1d8",
    "#5d9acb", "#3478b2", "#24649f", "#164f87", "#0a3769",
)  # fmt: skip
_DARK_FROM = 6

# Matplotlib's points are pixels where there are 72 dots an inch.
DPI = 72
TEXT = 12
SMALL = 11

_SETTINGS: dict[Any, Any] = {
    "axes.edgecolor": RULE,
    "axes.linewidth": 1,
    "axes.labelcolor": MUTED,
    "axes.labelsize": SMALL,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": ["DejaVu Sans"],
    "font.size": TEXT,
    "figure.dpi": DPI,
    "svg.fonttype": "none",
    # Ids in the file are hashes: the same plot, the same bytes.
    "svg.hashsalt": "jevexp",
    "text.color": INK,
    # A dollar in a name is no formula.
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "xtick.color": RULE,
    "xtick.labelcolor": MUTED,
    "xtick.labelsize": SMALL,
    "ytick.color": RULE,
    "ytick.labelcolor": MUTED,
    "ytick.labelsize": SMALL,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw with these settings, whatever the person's own configuration of Matplotlib says."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def level(share: float) -> int:
    """Which of the ten levels a share from 0 to 1 is at."""
    return min(int(share * LEVELS), LEVELS - 1)


def fill(at: int) -> str:
    """The colour of a level."""
    return _FILLS[at]


def ink_on(at: int) -> str:
    """What can be read on the colour of a level."""
    return "#fefefe" if at >= _DARK_FROM else "#101214"
