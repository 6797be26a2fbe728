"""JSON as the benchmark uses it: UTF-8 text, no NaN, no infinities."""

import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
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


def loads(text: str | bytes, *, lenient: bool = False) -> JSON:
    """Parse one JSON document.

    Args:
        text: the document; bytes have to be UTF-8.
        lenient: let a key that occurs twice and half of a surrogate pair pass, for a reader that
            names their place itself.

    Raises ValueError: not JSON, not UTF-8, nested more than 256 levels deep, more than two million
    values, a key twice in one object, half of a surrogate pair, or holding NaN, an infinity or a
    number too large for a float.
    """
    # The parser itself would also take UTF-16, and halves of surrogate pairs.
    decoded = text.decode() if isinstance(text, bytes) else text
    # Before they are made: each takes far more room than its two bytes here.
    if decoded.count(",") >= _MOST_VALUES:
        raise ValueError(f"more than {_MOST_VALUES} values")
    try:
        value = (_LENIENT if lenient else _STRICT).decode(decoded)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    # Counting is fast, and brackets in texts cost no more than a closer look.
    brackets = decoded.count("[") + decoded.count("{")
    if brackets > _MOST_LEVELS and is_deeper_than(value, _MOST_LEVELS):
        raise ValueError("nested too deep")
    # JSON can escape half of a surrogate pair, which no provider and no file can be sent.
    if not lenient and _HALF.search(decoded):
        try:
            dumps(value).encode()
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            raise ValueError(f"{half!r} is half of a surrogate pair, not a character") from error
    return value


def how_to_split(document: bytes, path: Path) -> str | None:
    """What is wrong with a document that should have one object a line, and the command that helps.

    Args:
        document: the bytes of the whole file.
        path: the file, which the command reads and leaves as it is.

    Returns:
        None where the file is neither an array nor an object over several lines.
    """
    try:
        text = document.decode().strip()
        value, end = _LENIENT.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    fields = value if isinstance(value, dict) else {}
    arrays = [name for name, part in fields.items() if isinstance(part, list) and part]
    if isinstance(value, list):
        what, parts = "one JSON array", ".[]"
    elif "\n" not in text[:end]:
        return None
    elif len(fields) == 1 and arrays:
        what = f"one JSON object that holds an array, {arrays[0]!r}"
        parts = f".{dumps(arrays[0])}[]"
    else:
        what, parts = "JSON that goes on over several lines", "."
    lines = path.with_name(f"{path.stem}-lines.jsonl")
    command = shlex.join(["jq", "-c", parts, str(path)])
    return f"holds {what}; write one object a line: {command} > {shlex.quote(str(lines))}"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{_beginning(digits)} is too large for a number")
    return number


def _whole(digits: str) -> int:
    # Only so many digits are worth reading: Python's limit on them is its own error.
    if len(digits) > _FEW_DIGITS and (len(digits) > _MOST_DIGITS or not _fits_a_float(int(digits))):
        raise ValueError(f"{_beginning(digits)} is too large for a number")
    return int(digits)


def _beginning(digits: str) -> str:
    return digits if len(digits) <= 20 else f"{digits[:20]}… ({len(digits)} characters)"


def _fits_a_float(number: int) -> bool:
    return number.bit_length() <= _MOST_BITS


def _each_once(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise ValueError(f"the key {counts.most_common(1)[0][0]!r} occurs twice in one object")
    return fields


# Every whole number below 2^1023 is one that a float can come near to.
_MOST_BITS = 1023
_MOST_DIGITS = 309
_FEW_DIGITS = 300
# What is written goes MAX_DEPTH levels deep inside of what a file wraps around it.
_MOST_LEVELS = MAX_DEPTH + 56
# As many as an answer of 8 MiB can hold that consists of short numbers.
_MOST_VALUES = 2_000_000
_HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_LENIENT = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite, parse_int=_whole)
_STRICT = json.JSONDecoder(
    object_pairs_hook=_each_once, parse_constant=_refuse, parse_float=_finite, parse_int=_whole
)


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
    if isinstance(value, float):
        plain = math.isfinite(value)
    else:
        plain = value is None or (isinstance(value, int) and _fits_a_float(value))
    return value if plain else _text(shown(value))


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
    for _ in range(levels + 1):
        groups = [part for part in layer if isinstance(part, Mapping | list | tuple)]
        if not groups:
            return False
        layer = [
            part
            for group in groups
            for part in (group.values() if isinstance(group, Mapping) else group)
        ]
    return True
