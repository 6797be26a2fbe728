"""How every plot looks.

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
