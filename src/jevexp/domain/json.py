"""JSON as the benchmark uses it: UTF-8 text, no NaN, no infinities."""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

# A recursive alias would say more, but every reader has to narrow it again.
JSON = Any
# Evidence is written and read again far below Python's recursion limit.
MAX_DEPTH = 200
# Leaves evidence room for what a provider wraps around a task.
MAX_TASK_DEPTH = 100


def dumps(value: JSON, *, sort_keys: bool = False, indent: int | None = None) -> str:
    """Serialize `value`; non-ASCII text stays readable.

    Raises:
        ValueError: the value holds NaN or an infinity.
        TypeError: the value holds something that JSON has no word for.
        RecursionError: the value is nested too deep.
    """
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=sort_keys, indent=indent
    )


def loads(text: str | bytes) -> JSON:
    """Parse one JSON document.

    Raises:
        ValueError: not JSON, not UTF-8, nested too deep, or holding NaN or an infinity, also as
            a number too large for a float.
    """
    try:
        # The parser itself would also take UTF-16, and halves of surrogate pairs.
        decoded = text.decode() if isinstance(text, bytes) else text
        return json.loads(decoded, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits} is too large for a number")
    return number


def representable(value: JSON, *, depth: int = 0) -> JSON:
    """`value` with everything that a JSON file cannot hold replaced by text that describes it.

    For evidence about a provider that returned NaN, an object, half of a surrogate pair or a
    million brackets: what came back is kept readable instead of lost.
    """
    if isinstance(value, Mapping) and depth < MAX_DEPTH:
        return {
            _text(key if isinstance(key, str) else shown(key)): representable(part, depth=depth + 1)
            for key, part in value.items()
        }
    if isinstance(value, list | tuple) and depth < MAX_DEPTH:
        return [representable(part, depth=depth + 1) for part in value]
    if isinstance(value, str):
        return _text(value)
    return value if _is_plain(value) else _text(shown(value))


def _is_plain(value: Any) -> bool:
    """Whether JSON has a word for `value`, which is no text, list or mapping."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return value.bit_length() <= _MOST_BITS
    return value is None


# What Python agrees to write in decimal digits, and to read again.
_MOST_BITS = 4096


def _text(value: str) -> str:
    """`value`, or its escaped form where UTF-8 cannot hold it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return ascii(value)
    return value


def shown(value: Any) -> str:
    """`repr` that always answers, also for objects that cannot be shown."""
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001  somebody else's __repr__ may raise anything
        return f"<{type(value).__name__}: {type(error).__name__}>"


def is_deeper_than(value: JSON, levels: int) -> bool:
    """Whether lists and objects are nested more than `levels` deep; a plain value has none."""
    layer = [value]
    for _ in range(levels):
        layer = [part for whole in layer for part in _parts(whole)]
    return any(isinstance(part, Mapping | list | tuple) for part in layer)


def _parts(value: JSON) -> Iterable[JSON]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()
