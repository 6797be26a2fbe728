"""The colours of heat maps, light for little and dark for much, the same in both schemes."""

LEVELS = 10
ABSENT = "#8a929c"
# One hue from light to dark, so that people who see no difference between hues read it alike, also
# in print without colour.
_FILLS = (
    "#eef3f9", "#dbe7f3", "#c3d8ec", "#a5c6e3", "#82b1d8",
    "#5d9acb", "#3478b2", "#24649f", "#164f87", "#0a3769",
)  # fmt: skip
_DARK_FROM = 6


def level(share: float) -> int:
    """Which of the ten levels a share from 0 to 1 is at."""
    return min(int(share * LEVELS), LEVELS - 1)


def fill(at: int) -> str:
    """The colour of a level."""
    return _FILLS[at]


def ink_on(at: int) -> str:
    """What can be read on the colour of a level."""
    return "#fefefe" if at >= _DARK_FROM else "#101214"
