"""Several tests at once."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values adjusted so that the chance of any false alarm stays at the level.

    Holm (1979), Scandinavian Journal of Statistics 6(2): the k-th smallest of m is multiplied by
    m - k + 1, and none becomes smaller than one before it. Same order as given.
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
