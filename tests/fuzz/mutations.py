"""Strategies that spoil good data: as JSON, as text and as bytes."""

import json
from typing import Any

from hypothesis import strategies as st

ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=12)
NASTY_TEXT = st.sampled_from(
    [
        "",
        "../../x",
        "/etc/passwd",
        "a\x00b",
        "\x1b[2J",
        "\u202e",
        "\ud800",
        "x" * 10_000,
        "__class__",
        "_target_",
        "${oc.env:HOME}",
        "<script>",
        "|",
        "`",
        "NaN",
        "日本語",
        "\u0660",
        "²",
    ]
)
NUMBERS = st.sampled_from(
    [0, -1, 1, 2, 10**300, -(10**300), 1e308, -1e308, 5e-324, 0.1, -0.0, 2**53 + 1]
)
LEAVES = st.none() | st.booleans() | NUMBERS | st.integers(-5, 5) | NASTY_TEXT | ANY_TEXT
VALUES = st.recursive(
    LEAVES,
    lambda parts: (
        st.lists(parts, max_size=3) | st.dictionaries(NASTY_TEXT | ANY_TEXT, parts, max_size=3)
    ),
    max_leaves=6,
)
# Text that JSON has no value for, put where a value was.
RAW = st.sampled_from(
    [
        "NaN",
        "-Infinity",
        "1e999999",
        "9" * 400,
        "9" * 5000,
        "[" * 2000,
        '{"a":' * 2000,
        "[" * 300 + "]" * 300,
        '"\\ud800"',
        '{"a": 1, "a": 2}',
        "",
        "}",
        "nul",
        '"\x01"',
    ]
)
_MARK = "\ue000 mark \ue000"


@st.composite
def spoiled(draw: st.DrawFn, good: Any, *, changes: int = 2) -> Any:
    """A copy of a JSON value in which some places are gone, replaced or new."""
    value = json.loads(json.dumps(good))
    for _ in range(draw(st.integers(0, changes))):
        value = _change(draw, value)
    return value


@st.composite
def spoiled_json(draw: st.DrawFn, good: Any) -> bytes:
    """A JSON document made of `good`: with other values, with none, or with other bytes."""
    value = draw(spoiled(good))
    if draw(st.integers(0, 3)) == 0:
        text = json.dumps(_replace(draw, value, _MARK), ensure_ascii=True)
        text = text.replace(json.dumps(_MARK), draw(RAW), 1)
    else:
        text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    data = text.encode(errors="surrogatepass")
    return draw(spoiled_bytes(data)) if draw(st.integers(0, 3)) == 0 else data


@st.composite
def spoiled_bytes(draw: st.DrawFn, good: bytes) -> bytes:
    """Bytes of which some are other ones, gone or new."""
    data = bytearray(good)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        kind = draw(st.integers(0, 3))
        if kind == 0 and at < len(data):
            data[at] = draw(st.integers(0, 255))
        elif kind == 1:
            data[at : at + draw(st.integers(1, 40))] = b""
        elif kind == 2:
            data[at:at] = draw(st.binary(max_size=20))
        else:
            del data[at:]
    return bytes(data)


def _change(draw: st.DrawFn, value: Any) -> Any:
    return _replace(draw, value, draw(VALUES), remove=draw(st.integers(0, 4)) == 0)


def _replace(draw: st.DrawFn, value: Any, new: Any, *, remove: bool = False) -> Any:
    """`value` with one place, chosen on the way down, holding something else."""
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = list(range(len(value)))
    if not keys or draw(st.integers(0, 9)) == 0:
        return new
    key = draw(st.sampled_from(keys))
    if remove:
        del value[key]
    elif isinstance(value, dict) and draw(st.integers(0, 9)) == 0:
        value[draw(NASTY_TEXT)] = new
    else:
        value[key] = _replace(draw, value[key], new)
    return value
