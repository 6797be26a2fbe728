"""The checksums of every file: nothing changed, nothing missing, nothing added."""

import hashlib
import re
from pathlib import Path, PurePosixPath

from jevexp.store.directory import CHECKSUMS
from jevexp.untrusted.files import TooLong, numbered_lines, opened
from jevexp.verification.check import Check
from jevexp.verification.tree import Tree

# What is made from a finished run, and can be made again.
MADE_LATER = ("report.html", "plots/")

_LINE = re.compile(rb"([0-9a-f]{64})  ([^\n]+)\n")
_LONGEST_LINE = 8192
_PIECE = 1 << 20


def check_files(root: Path, tree: Tree) -> Check:
    """Hold every file against the checksums; without checksums only links and the like are found.

    Raises:
        OSError: a file that was there a moment ago cannot be read.
    """
    check = Check("files", f"every file is listed once in {CHECKSUMS} and has that SHA-256")
    for name, fault in tree.faults.items():
        check.fail(name, fault)
    for name in tree.links:
        check.fail(name, "has a second name somewhere (a hard link), through which it can change")
    if CHECKSUMS not in tree.files:
        check.skip(f"there is no {CHECKSUMS}")
        return check
    listed = _listed(root, tree, check)
    for name, (line, digest) in listed.items():
        check.count += 1
        with check.guarded(name), opened(root / name, follow_links=False) as file:
            found = hashlib.sha256()
            while part := file.read(_PIECE):
                found.update(part)
            if found.hexdigest() != digest:
                check.fail(name, f"its SHA-256 is not the one in {CHECKSUMS}:{line}")
    for name in tree.files:
        if name not in listed and name != CHECKSUMS and not made_later(name):
            check.fail(name, f"is not in {CHECKSUMS}")
    return check


def made_later(name: str) -> bool:
    """Whether a file is one that is made from a finished run, which no checksum covers."""
    return any(name == one or (one[-1] == "/" and name.startswith(one)) for one in MADE_LATER)


def _listed(root: Path, tree: Tree, check: Check) -> dict[str, tuple[int, str]]:
    """Line and SHA-256 of every file that is there and listed."""
    listed: dict[str, tuple[int, str]] = {}
    try:
        with opened(root / CHECKSUMS, follow_links=False) as file:
            for number, line in numbered_lines(file, most=_LONGEST_LINE):
                found = _LINE.fullmatch(line)
                name = _name(found[2]) if found else None
                if found is None or name is None:
                    check.fail(CHECKSUMS, "not a checksum and a name", line=number)
                elif name in listed:
                    check.fail(CHECKSUMS, f"{name}: is listed twice", line=number)
                elif name not in tree.files:
                    check.fail(CHECKSUMS, f"{name}: is missing", line=number)
                else:
                    listed[name] = (number, found[1].decode())
    except TooLong as error:
        check.fail(CHECKSUMS, f"a line is {error}", line=error.line)
    return listed


def _name(raw: bytes) -> str | None:
    """A name inside the directory, spelled in the one way that names are spelled; else None."""
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        return None
    path = PurePosixPath(name)
    inside = not path.is_absolute() and ".." not in path.parts
    return name if inside and str(path) == name and name != CHECKSUMS else None
