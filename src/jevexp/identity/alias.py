"""The quantization that a model's name claims, such as q4km in "gemma-4-31b-q4km"."""

import re
from collections.abc import Iterator
from functools import cache

from jevexp.core.ftype import ftype_names

# A name ends where its letters and digits do, and also not where a size follows: Q2_K_XL is no
# Q2_K, and what it is, no header says.
_END = r"(?![a-z0-9])(?![_-](?:xxs|xs|s|m|l|xl|xxl)(?![a-z0-9]))"
# Not the weights' own: the type of the cache, or of a projector beside them.
_START = r"(?<![a-z0-9])(?<!kv[_.-])(?<!cache[_.-])(?<!mmproj[_.-])"


def quantizations_in(alias: str) -> tuple[frozenset[str], ...]:
    """The file types that each quantization named in `alias` may mean.

    A full name means one. A family, such as q4_k, means each of its sizes. "q4" alone means too
    much to be a claim.
    """
    found = _pattern().finditer(alias.lower())
    return tuple(_meanings()[_plain(match.group())] for match in found)


@cache
def _pattern() -> re.Pattern[str]:
    # The longest first: Q4_K_M is also a Q4_K with something behind it.
    spellings = sorted(_spellings(), key=len, reverse=True)
    return re.compile(f"{_START}(?:{'|'.join(spellings)}){_END}")


def _spellings() -> Iterator[str]:
    for name in _names():
        parts = name.lower().split("_")
        # Where digits stand on both sides, nothing but an underscore can part them: q4-1 may be
        # the end of one word and the start of another, and q80 may be anything.
        yield "_".join(parts) if parts[-1].isdigit() else "[_-]?".join(parts)


@cache
def _meanings() -> dict[str, frozenset[str]]:
    return {_plain(name.lower()): types for name, types in _names().items()}


@cache
def _names() -> dict[str, frozenset[str]]:
    names = {name: frozenset({name}) for name in ftype_names()}
    for name in ftype_names():
        family = re.fullmatch(r"(Q\d_K)_[SML]", name)
        if family and family[1] not in ftype_names():
            names[family[1]] = names.get(family[1], frozenset()) | {name}
    for ours, also in {"F16": "FP16", "F32": "FP32", "MXFP4_MOE": "MXFP4"}.items():
        if ours in names:
            names[also] = names[ours]
    return names


def _plain(spelling: str) -> str:
    return spelling.replace("_", "").replace("-", "")
