"""`checksums.sha256`: the SHA-256 of every file of a run, in the format of `sha256sum -c`."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from jevexp.untrusted.files import numbered_lines, opened, read_document

CHECKSUMS = "checksums.sha256"
_LINE = re.compile(rb"([0-9a-f]{64})  ([^\n]+)\n")
_LONGEST_LINE = 8192


class Checksum(NamedTuple):
    """A line of the file: its number from 1 on, the name below the directory, the SHA-256 in hex.

    The last two are null where the line is none of a checksum and a name inside the directory.
    """

    line: int
    name: str | None
    sha256: str | None


def checksum_lines(root: Path) -> bytes:
    """The whole file for a directory, in the order of paths; links are left out."""
    # As texts, which take a small part of what as many paths would.
    names = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink()
    ]
    sums = bytearray()
    for name in sorted(names, key=lambda name: name.split("/")):
        sums += f"{file_sha256(root / name)}  {name}\n".encode()
    return bytes(sums)


def read_checksums(root: Path) -> Iterator[Checksum]:
    """The lines of a directory's checksums, one by one.

    Raises:
        TooLong: a line is too long; names its number.
        OSError: there is no such regular file, or it cannot be read.
    """
    with opened(root / CHECKSUMS, follow_links=False) as file:
        for number, line in numbered_lines(file, most=_LONGEST_LINE):
            match = _LINE.fullmatch(line)
            name = _name(match[2]) if match else None
            sha256 = match[1].decode() if match and name else None
            yield Checksum(number, name, sha256)


def file_sha256(path: Path, *, follow_links: bool = False) -> str:
    """The SHA-256 of a file in hex; raises OSError: it is no regular file, or cannot be read."""
    with opened(path, follow_links=follow_links) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def document_sha256(path: Path) -> str:
    """The SHA-256 in hex of a file that is small enough to be read as a whole.

    Raises:
        TooLong: it is not.
        OSError: it is no regular file, or cannot be read.
    """
    return hashlib.sha256(read_document(path, follow_links=False)).hexdigest()


def _name(raw: bytes) -> str | None:
    """A name inside the directory, spelled in the one way that names are spelled; else None."""
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        return None
    path = PurePosixPath(name)
    inside = not path.is_absolute() and ".." not in path.parts
    return name if inside and str(path) == name and name != CHECKSUMS else None
