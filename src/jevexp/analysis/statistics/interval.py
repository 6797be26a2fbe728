"""An interval, as every statistic returns it."""

from typing import NamedTuple


class Interval(NamedTuple):
    """From `low` to `high`, in the unit of what it is an interval of."""

    low: float
    high: float

    def excludes(self, value: float) -> bool:
        """Whether `value` lies outside."""
        return not self.low <= value <= self.high

    def within(self, margin: float) -> bool:
        """Whether all of it is closer to zero than `margin`."""
        return -margin < self.low and self.high < margin
