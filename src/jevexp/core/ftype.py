"""A GGUF file type, such as Q4_K_M, in any of its spellings, also inside of a model's name.

A header holds a number (15), a llama.cpp server a description ("Q4_K - Medium"), a person and the
`gguf` library a name ("Q4_K_M", "MOSTLY_Q4_K_M"). All of them come down to one name here.
"""

import difflib
import re
from dataclasses import dataclass
from functools import cache

# How llama.cpp's server describes a size, and the one type that it describes as another's mix.
_SIZES = {"small": "S", "medium": "M", "large": "L"}
_DESCRIBED = {"IQ3_S_MIX": "IQ3_M"}
# A name ends where its letters and digits do, and also not where a size follows: Q2_K_XL is no
# Q2_K, and what it is, no header says.
_END = r"(?![a-z0-9])(?![_-](?:xxs|xs|s|m|l|xl|xxl)(?![a-z0-9]))"
# Not the weights' own: the type of the cache, or of a projector beside them.
_START = r"(?<![a-z0-9])(?<!kv[_.-])(?<!cache[_.-])(?<!mmproj[_.-])"


@dataclass(frozen=True, slots=True)
class Ftype:
    """`name` as in "Q4_K_M", `number` as in the header.

    `guessed` says that the header had none and that llama.cpp went by the tensors.
    """

    name: str
    number: int
    guessed: bool = False


def ftype_of(spelling: str | int) -> Ftype | None:
    """The file type that `spelling` means; None where the `gguf` library knows no such type."""
    if isinstance(spelling, int):
        from gguf import LlamaFileType

        number = spelling & ~int(LlamaFileType.GUESSED)
        names = {known: name for name, known in _numbers().items()}
        return Ftype(names[number], number, number != spelling) if number in names else None
    text, guesses = re.subn(r"\(guessed\)|\bguessed\b", " ", spelling, flags=re.IGNORECASE)
    base, _, described = text.strip().partition(" - ")
    name = re.sub(r"^(MOSTLY|ALL)_", "", re.sub(r"[\s-]+", "_", base.strip()).upper())
    name = _DESCRIBED.get(name, name)
    size = _SIZES.get(described.strip().lower())
    # Q2_K is described as medium and yet has no letter for it.
    for reading in [f"{name}_{size}", name] if size else [name]:
        if reading in _numbers():
            return Ftype(reading, _numbers()[reading], guesses > 0)
    return None


def claimed_ftype(spelling: str | int) -> str:
    """The name of a file type that somebody claims.

    Raises ValueError: there is no such type; names the nearest.
    """
    if ftype := ftype_of(spelling):
        return ftype.name
    names = list(_numbers())
    near = difflib.get_close_matches(str(spelling).strip().upper(), names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
    raise ValueError(f"no such file type: {spelling!r}; {hint}")


def ftype_names() -> tuple[str, ...]:
    """Every name that the `gguf` library knows."""
    return tuple(_numbers())


def quantizations_in(alias: str) -> tuple[frozenset[str], ...]:
    """The file types that each quantization named in `alias` may mean.

    A full name means one. A family, such as q4_k, means each of its sizes. "q4" alone means too
    much to be a claim.
    """
    meanings = {_without_separators(name.lower()): types for name, types in _alias_names().items()}
    spellings = _pattern().findall(alias.lower())
    return tuple(meanings[_without_separators(spelling)] for spelling in spellings)


@cache
def _numbers() -> dict[str, int]:
    # Only a claim or a header needs the names, and numpy comes with them.
    from gguf import LlamaFileType

    return {
        re.sub(r"^(MOSTLY|ALL)_", "", ftype.name).upper(): int(ftype)
        for ftype in LlamaFileType
        if ftype is not LlamaFileType.GUESSED
    }


@cache
def _pattern() -> re.Pattern[str]:
    names = [name.lower().split("_") for name in _alias_names()]
    # Where digits stand on both sides, nothing but an underscore can part them: q4-1 may be the end
    # of one word and the start of another, and q80 may be anything.
    spellings = [("_" if parts[-1].isdigit() else "[_-]?").join(parts) for parts in names]
    # The longest first: Q4_K_M is also a Q4_K with something behind it.
    longest_first = sorted(spellings, key=len, reverse=True)
    return re.compile(f"{_START}(?:{'|'.join(longest_first)}){_END}")


@cache
def _alias_names() -> dict[str, frozenset[str]]:
    names = {name: frozenset({name}) for name in ftype_names()}
    for name in ftype_names():
        family = re.fullmatch(r"(Q\d_K)_[SML]", name)
        if family and family[1] not in ftype_names():
            names[family[1]] = names.get(family[1], frozenset()) | {name}
    for ours, also in {"F16": "FP16", "F32": "FP32", "MXFP4_MOE": "MXFP4"}.items():
        if ours in names:
            names[also] = names[ours]
    return names


def _without_separators(spelling: str) -> str:
    return spelling.replace("_", "").replace("-", "")
