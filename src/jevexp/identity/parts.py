"""A model in several files: NAME-00001-of-00003.gguf and so on are one identity."""

import re
from pathlib import Path

from jevexp.identity.files import WeightsError

_PART = re.compile(r"(?P<name>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)


def part_number(path: Path) -> int | None:
    """Which part the file's name says it is, from 1; None where the name is not a part's."""
    found = _PART.fullmatch(path.name)
    return int(found["number"]) if found else None


def parts_of(path: Path) -> tuple[Path, ...]:
    """Every file of the model that `path` is a part of, in order; `path` alone where it is whole.

    Raises:
        WeightsError: a part is missing; names it.
    """
    found = _PART.fullmatch(path.name)
    if found is None:
        return (path,)
    count = int(found["count"])
    if not 1 <= int(found["number"]) <= count:
        raise WeightsError(f"{path}: part {int(found['number'])} of {count} cannot be")
    parts = []
    for number in range(1, count + 1):
        part = path.with_name(f"{found['name']}-{number:05}-of-{count:05}.gguf")
        # One by one, so that a name that claims 99,999 parts is refused at the first one missing.
        if not part.exists():
            raise WeightsError(f"{part}: missing; part {number} of {count}")
        parts.append(part)
    return tuple(parts)
