"""Spoils good data: as JSON, as text and as bytes. Everything follows from the `Random` given."""

import json
from random import Random
from typing import Any

NASTY = (
    "",
    "../../x",
    "/etc/passwd",
    "a\x00b",
    "\x1b[2J",
    "a\nb",
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
)
NUMBERS = (0, -1, 1, 2, 10**300, -(10**300), 1e308, -1e308, 5e-324, 0.1, -0.0, 2**53 + 1, 10**400)
# Text that JSON has no value for, or too much of one, put where a value was.
RAW = (
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
)
_CHARACTERS = (
    (0, 0x20),
    (0x20, 0x7F),
    (0x7F, 0x100),
    (0x2000, 0x2070),
    (0xD800, 0xE000),
    (0, 0x110000),
)
_MARK = "\ue000 mark \ue000"


def text(random: Random) -> str:
    """A nasty text, or any."""
    if random.random() < 0.5:
        return random.choice(NASTY)
    return "".join(
        chr(random.randrange(*random.choice(_CHARACTERS))) for _ in range(random.randrange(12))
    )


def value(random: Random, depth: int = 0) -> Any:
    """Any JSON value, and some that are none."""
    kind = random.randrange(6 if depth < 3 else 4)
    if kind == 0:
        return random.choice((None, True, False))
    if kind == 1:
        return random.choice(NUMBERS)
    if kind in {2, 3}:
        return text(random)
    parts = [value(random, depth + 1) for _ in range(random.randrange(4))]
    return parts if kind == 4 else {text(random): part for part in parts}


def spoiled_json(random: Random, good: Any) -> bytes:
    """A JSON document made of `good`: with other values, with none, or with other bytes."""
    spoiled = json.loads(json.dumps(good))
    for _ in range(random.randrange(3)):
        spoiled = _replaced(random, spoiled, value(random), remove=random.random() < 0.2)
    if random.random() < 0.25:
        document = json.dumps(_replaced(random, spoiled, _MARK))
        document = document.replace(json.dumps(_MARK), random.choice(RAW), 1)
    else:
        document = json.dumps(spoiled, ensure_ascii=random.random() < 0.5)
    data = document.encode(errors="surrogatepass")
    return spoiled_bytes(random, data) if random.random() < 0.25 else data


def spoiled_bytes(random: Random, good: bytes) -> bytes:
    """Bytes of which some are other ones, gone or new."""
    data = bytearray(good)
    for _ in range(random.randint(1, 3)):
        at = random.randint(0, len(data))
        kind = random.randrange(4)
        if kind == 0 and at < len(data):
            data[at] = random.randrange(256)
        elif kind == 1:
            data[at : at + random.randint(1, 40)] = b""
        elif kind == 2:
            data[at:at] = random.randbytes(random.randrange(20))
        elif random.random() < 0.3:
            del data[at:]
    return bytes(data)


def _replaced(random: Random, good: Any, new: Any, *, remove: bool = False) -> Any:
    """`good` with one place, chosen on the way down, holding something else."""
    keys = (
        list(good) if isinstance(good, dict) else range(len(good)) if isinstance(good, list) else ()
    )
    if not keys or random.random() < 0.1:
        return new
    key = random.choice(keys)
    if remove:
        del good[key]
    elif isinstance(good, dict) and random.random() < 0.1:
        good[text(random)] = new
    else:
        good[key] = _replaced(random, good[key], new)
    return good
