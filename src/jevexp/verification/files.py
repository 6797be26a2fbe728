"""The files of a directory that a stranger may have made, held against the run's checksums."""

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from jevexp.store.checksums import CHECKSUMS, file_sha256, read_checksums
from jevexp.untrusted.files import TooLong
from jevexp.verification.check import Check

# Far beyond any run: a task has one raw file, and a log of a server is the largest there is.
MOST_ENTRIES = 4_000_000
MOST_LEVELS = 16
# A file with holes takes no place on a disk and hours to read.
MOST_BYTES = 32 << 30

_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

# What is made from a finished run, and can be made again.
MADE_LATER = ("report.html", "plots/")
# What a process leaves that is killed while it replaces the page.
_HALF_WRITTEN = re.compile(r"\.report\.html\.[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Tree:
    """`files` maps the names of regular files, relative to the directory, to their sizes in bytes.

    `links` names those that have a second name somewhere, and `faults` says of everything else
    what it is.
    """

    files: dict[str, int] = field(default_factory=dict)
    links: list[str] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)

    def below(self, folder: str) -> list[str]:
        """The names of the files in a folder, without it."""
        start = f"{folder}/"
        return [name.removeprefix(start) for name in self.files if name.startswith(start)]


def read_tree(root: Path) -> Tree:
    """List a directory without following any link and without opening any file.

    Raises:
        OSError: the directory itself cannot be listed.
    """
    tree = Tree()
    entries = size = 0
    folders = [("", 0)]
    while folders:
        folder, level = folders.pop()
        try:
            with os.scandir(root / folder) as listing:
                found = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            if not folder:
                raise
            tree.faults[folder] = f"cannot be listed: {error.strerror}"
            continue
        for entry in found:
            name = f"{folder}/{entry.name}" if folder else entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                # Of a run that is still at work: replaced a moment ago.
                continue
            entries += 1
            size += status.st_size if stat.S_ISREG(status.st_mode) else 0
            if entries > MOST_ENTRIES or size > MOST_BYTES:
                tree.faults[name] = "too much to be a run: nothing from here on was looked at"
                return tree
            if fault := _fault(name, status, level):
                tree.faults[name] = fault
            elif stat.S_ISDIR(status.st_mode):
                folders.append((name, level + 1))
            else:
                tree.files[name] = status.st_size
                if status.st_nlink > 1:
                    tree.links.append(name)
    return tree


def _fault(name: str, status: os.stat_result, level: int) -> str | None:
    kind = stat.S_IFMT(status.st_mode)
    if kind in _KINDS:
        return f"is {_KINDS[kind]}, where only files and folders may be"
    try:
        name.encode()
    except UnicodeEncodeError:
        return "has a name that is not UTF-8"
    if kind == stat.S_IFDIR and level >= MOST_LEVELS:
        return f"is a folder more than {MOST_LEVELS} levels deep"
    return None


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
        with check.guarded(name):
            if file_sha256(root / name) != digest:
                check.fail(name, f"its SHA-256 is not the one in {CHECKSUMS}:{line}")
    for name in tree.files:
        if name not in listed and name != CHECKSUMS and not made_later(name):
            check.fail(name, f"is not in {CHECKSUMS}")
    return check


def made_later(name: str) -> bool:
    """Whether a file is one that is made from a finished run, which no checksum covers."""
    if _HALF_WRITTEN.fullmatch(name):
        return True
    return any(name == one or (one[-1] == "/" and name.startswith(one)) for one in MADE_LATER)


def _listed(root: Path, tree: Tree, check: Check) -> dict[str, tuple[int, str]]:
    """Line and SHA-256 of every file that is there and listed."""
    listed: dict[str, tuple[int, str]] = {}
    try:
        for line, name, sha256 in read_checksums(root):
            if name is None or sha256 is None:
                check.fail(CHECKSUMS, "not a checksum and a name", line=line)
            elif name in listed:
                check.fail(CHECKSUMS, f"{name}: is listed twice", line=line)
            elif name not in tree.files:
                check.fail(CHECKSUMS, f"{name}: is missing", line=line)
            else:
                listed[name] = (line, sha256)
    except TooLong as error:
        check.fail(CHECKSUMS, f"a line is {error}", line=error.line)
    return listed
