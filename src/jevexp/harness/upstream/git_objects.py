"""Files of one commit, from a repository in which nothing is believed and nothing of it runs.

A checkout can differ from its commit where `git status` does not look: in files that are marked
assume-unchanged or skip-worktree, in excluded ones, through filters and replaced objects. So its
files, its index and its HEAD are not looked at. What is read are the objects, and each has to be
what its name says. Git finds them from a repository of ours that has no configuration: the other
one's settings, hooks, filters, attributes, references and promised objects are not read.
"""

import hashlib
import os
import re
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from jevexp.errors import InputError
from jevexp.untrusted.files import read_document
from jevexp.untrusted.writing import Folder, write_new

# Far above a file of source code, a folder's listing or a commit's message.
MAX_OBJECT_BYTES = 8 << 20
_MAX_POINTER_BYTES = 1 << 16
_MAX_DEPTH = 32
_TIMEOUT_S = 60.0
_MEMORY_BYTES = 2 << 30
_ID_BYTES = hashlib.sha1(usedforsecurity=False).digest_size


class GitObjects:
    """The objects of the repository that a checkout belongs to.

    Args:
        checkout: the top of a checkout, or of a further work tree of one.
        private: a folder of ours, in which a repository is made that holds nothing.

    Raises:
        InputError: `checkout` is no such folder.
    """

    def __init__(self, checkout: Path, private: Path) -> None:
        self._checkout = checkout
        self._objects = _repository(checkout) / "objects"
        with Folder.open(private) as folder:
            for name in ("objects", "refs"):
                folder.make(name)
        write_new(private / "HEAD", b"ref: refs/heads/none\n")
        self._private = private

    def files(self, commit: str, folder: str) -> dict[PurePosixPath, bytes]:
        """The regular files below a folder of a commit; links and submodules are left out.

        Raises:
            InputError: an object is missing, is not what its name says, or is too large.
        """
        (data,) = self._read([commit], "commit")
        start = re.match(rb"tree ([0-9a-f]{40})\n", data)
        if start is None:
            raise self._refused(f"the commit {commit} names no tree")
        top = self._entries(start[1].decode())
        names = [entry for entry in top if entry[1] == folder and stat.S_ISDIR(entry[0])]
        if not names:
            raise self._refused(f"the commit {commit} has no folder {folder}")
        found = dict(self._below(names[0][2], PurePosixPath(folder)))
        contents = self._read(list(found.values()), "blob")
        return dict(zip(found, contents, strict=True))

    def _below(
        self, tree: str, path: PurePosixPath, depth: int = 0
    ) -> Iterator[tuple[PurePosixPath, str]]:
        if depth > _MAX_DEPTH:
            raise self._refused(f"{path}: folders in folders, too many")
        for mode, name, object_id in self._entries(tree):
            if stat.S_ISDIR(mode):
                yield from self._below(object_id, path / name, depth + 1)
            elif stat.S_ISREG(mode):
                yield path / name, object_id

    def _entries(self, tree: str) -> list[tuple[int, str, str]]:
        """Mode, name and object of everything in a folder."""
        (data,) = self._read([tree], "tree")
        entries, at = [], 0
        while at < len(data):
            entry = re.compile(rb"([0-7]{5,6}) ([^\0/]+)\0").match(data, at)
            if entry is None or entry[2] in (b".", b"..") or entry.end() + _ID_BYTES > len(data):
                raise self._refused(f"the tree {tree} is damaged")
            at = entry.end() + _ID_BYTES
            object_id = data[entry.end() : at].hex()
            entries.append((int(entry[1], 8), os.fsdecode(entry[2]), object_id))
        return entries

    def _read(self, ids: Sequence[str], kind: str) -> list[bytes]:
        """Objects of one kind, each held against its name."""
        # Their sizes first, so that none is unpacked that would fill the memory.
        for object_id, line in zip(ids, self._git("--batch-check", ids).splitlines(), strict=False):
            found = line.decode(errors="replace").split(" ")
            if found[1:] == ["missing"]:
                raise self._refused(f"holds no {kind} {object_id}; git fetch origin there")
            if found[:2] != [object_id, kind] or int(found[2]) > MAX_OBJECT_BYTES:
                raise self._refused(f"the {kind} {object_id} is {' '.join(found[1:])} bytes")
        output = self._git("--batch", ids)
        contents, at = [], 0
        for object_id in ids:
            header = re.compile(rb"[0-9a-f]{40} [a-z]+ (\d+)\n").match(output, at)
            if header is None:
                raise self._refused(f"the {kind} {object_id} cannot be read")
            end = header.end() + int(header[1])
            data = output[header.end() : end]
            named = hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)), usedforsecurity=False)
            named.update(data)
            if named.hexdigest() != object_id:
                raise self._refused(f"the {kind} {object_id} is not what its name says")
            contents.append(data)
            at = end + 1
        return contents

    def _git(self, option: str, ids: Sequence[str]) -> bytes:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("GIT_")
        } | {
            "GIT_DIR": str(self._private),
            "GIT_OBJECT_DIRECTORY": str(self._objects),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            # No way of fetching anything is allowed.
            "GIT_ALLOW_PROTOCOL": "none",
        }
        names = "".join(f"{object_id}\n" for object_id in ids).encode()
        try:
            process = subprocess.Popen(
                ["git", "cat-file", option, "--buffer"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd=self._private,
            )
        except OSError as error:
            raise self._refused("git cannot be run") from error
        with process:
            try:
                # It waits for the names until then. A small object can be told as a change of a
                # vast one, which is unpacked first.
                if sys.platform == "linux":
                    resource.prlimit(process.pid, resource.RLIMIT_AS, (_MEMORY_BYTES,) * 2)
                output, _ = process.communicate(names, timeout=_TIMEOUT_S)
            except subprocess.TimeoutExpired as error:
                raise self._refused(f"git took more than {_TIMEOUT_S:.0f} seconds") from error
            finally:
                process.kill()
        if process.returncode != 0:
            raise self._refused("holds objects that git cannot read; git fsck there")
        return output

    def _refused(self, reason: str) -> InputError:
        return InputError(f"harness.path: {self._checkout}: {reason}")


def _repository(checkout: Path) -> Path:
    """Where a checkout's repository is: `.git`, or for a further work tree what that file names."""
    at = checkout / ".git"
    try:
        if not at.is_dir():
            at = _pointed_at(checkout, _pointer(at).removeprefix("gitdir: "))
            # A work tree has a part of its own, and names the part that all share.
            if (at / "commondir").exists():
                at = _pointed_at(at, _pointer(at / "commondir"))
        if (at / "objects").is_dir():
            return at
    except (OSError, ValueError):
        pass
    raise InputError(f"harness.path: {checkout}: not the top of a git checkout")


def _pointer(file: Path) -> str:
    return os.fsdecode(read_document(file, most=_MAX_POINTER_BYTES)).rstrip("\n")


def _pointed_at(start: Path, name: str) -> Path:
    return Path(os.path.abspath(start / name))  # noqa: PTH100  names a folder, follows nothing
