"""JSON as the benchmark uses it: UTF-8 text, no NaN, no infinities."""

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

# A recursive alias would say more, but every reader has to narrow it again.
JSON = Any


def dumps(value: JSON, *, sort_keys: bool = False, indent: int | None = None) -> str:
    """Serialize `value`; non-ASCII text stays readable.

    Raises:
        ValueError: the value holds NaN or an infinity, or is nested too deep.
        TypeError: the value holds something that JSON has no word for.
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
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits} is too large for a number")
    return number


def representable(value: JSON) -> JSON:
    """`value` with everything that JSON has no word for replaced by its `repr`.

    For evidence about an in-process provider that returned NaN or an object: what came back is
    kept readable instead of lost.
    """
    if isinstance(value, Mapping):
        return {str(key): representable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [representable(part) for part in value]
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return repr(value)
