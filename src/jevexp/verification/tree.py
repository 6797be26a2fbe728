"""What is in a directory that a stranger may have made: regular files, and everything else."""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

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
