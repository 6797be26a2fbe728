"""How far two distributions over the same labels are apart."""

import math
from collections.abc import Mapping


def total_variation(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """Half the sum of absolute differences: 0 for equal distributions, 1 for disjoint ones.

    The largest difference between the probabilities that both give to one set of labels; Levin
    and Peres (2017), "Markov Chains and Mixing Times", proposition 4.2.
    """
    labels = first.keys() | second.keys()
    return math.fsum(abs(first.get(label, 0.0) - second.get(label, 0.0)) for label in labels) / 2
