"""Where two computations of the same numbers differ."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from jevexp.core.json import dumps

# How far two ways to sum the same numbers may be apart.
TOLERANCE = 1e-12


def differences(stored: Any, computed: Any, at: str = "") -> Iterator[str]:
    """Where two summaries differ, a line each."""
    if isinstance(stored, Mapping) and isinstance(computed, Mapping):
        for name in dict.fromkeys([*stored, *computed]):
            place = f"{at}.{name}" if at else str(name)
            if name not in stored or name not in computed:
                yield f"{place}: only {'computed' if name in computed else 'stored'}"
            else:
                yield from differences(stored[name], computed[name], place)
    elif isinstance(stored, list) and isinstance(computed, list) and len(stored) == len(computed):
        for index, (one, other) in enumerate(zip(stored, computed, strict=True)):
            yield from differences(one, other, f"{at}[{index}]")
    elif not same(stored, computed):
        yield f"{at}: stored {dumps(stored)}, computed {dumps(computed)}"


def same(one: Any, other: Any) -> bool:
    """Whether two plain values are the same, numbers up to how they were summed."""
    if _is_number(one) and _is_number(other):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(one) is type(other) and bool(one == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
