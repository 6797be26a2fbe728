"""Many values in requests of bounded size."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batches(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """The values in lists of at most `size`, read as they are needed."""
    remaining = iter(values)
    while batch := list(islice(remaining, size)):
        yield batch
