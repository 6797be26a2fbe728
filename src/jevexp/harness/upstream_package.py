"""The pinned harness's own package: found, held against the pin, imported.

Only the very commit is used: installed from git, or from the objects of the checkout that
`harness.path` names. The package index has another project under the same name, which is told
apart and refused.

A checkout can differ from its commit where `git status` does not look: in files that are marked
assume-unchanged or skip-worktree, in excluded ones, through filters and replaced objects. So its
files, its index and its HEAD are not looked at. What is read are the objects, and each has to be
what its name says. Git finds them from a repository of ours that has no configuration: the other
one's settings, hooks, filters, attributes, references and promised objects are not read.
"""

import hashlib
import importlib
import importlib.metadata
import importlib.util
import logging
import os
import re
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Literal

from jevexp.core.json import loads
from jevexp.errors import InputError
from jevexp.settings import PINNED_COMMIT
from jevexp.untrusted.files import read_document
from jevexp.untrusted.writing import Folder, make_folders, write_new

log = logging.getLogger(__name__)

NAME = "jevbench"
INSTALL = "pip install 'jevexp[upstream]'"
# By commit. Modules of the package may be imported until the end.
_folders: dict[str, TemporaryDirectory[str]] = {}


@dataclass(frozen=True, slots=True)
class Location:
    """A copy of the package at the pin; `root` is the folder that holds `jevbench`.

    For a checkout this is a folder of ours, with the files as they are in the commit's objects.
    """

    root: Path
    origin: Literal["installed package", "git checkout"]


def find(path: str | None) -> Location:
    """The checkout at `path`, or the installed package where that is null.

    Raises InputError: what is there is not the pinned commit; names it, and how to get that.
    """
    if path is None:
        return _installed()
    checkout = Path(path).expanduser()
    if not checkout.is_dir():
        raise InputError(f"harness.path: {checkout}: no such folder; {INSTALL}, or name a checkout")
    with TemporaryDirectory(prefix="jevexp-git-") as private:
        files = GitObjects(checkout, Path(private)).files(PINNED_COMMIT, NAME)
    if PINNED_COMMIT not in _folders:
        folder = TemporaryDirectory(prefix="jevexp-harness-")
        root = Path(folder.name).resolve()
        for name, data in files.items():
            make_folders(root / name.parent)
            write_new(root / name, data)
        _folders[PINNED_COMMIT] = folder
    return Location(Path(_folders[PINNED_COMMIT].name).resolve(), "git checkout")


def _installed() -> Location:
    # A provider's own code is looked for in the current folder too, which installs nothing.
    places = [place for place in sys.path if place not in ("", os.getcwd())]  # noqa: PTH109
    distribution = next(iter(importlib.metadata.distributions(name=NAME, path=places)), None)
    if distribution is None:
        raise _not_pinned("it is not installed")
    commit = _commit(distribution)
    if commit != PINNED_COMMIT:
        raise _not_pinned(f"found {NAME} at commit {commit}")
    package = Path(str(distribution.locate_file(NAME))).resolve()
    spec = importlib.util.find_spec(NAME)
    imported = Path(spec.origin).resolve().parent if spec and spec.origin else None
    if imported != package:
        raise InputError(
            f"harness.name: importing {NAME} finds {imported or 'no package'} instead of the "
            f"installed {package}; start jevexp in another folder"
        )
    return Location(package.parent, "installed package")


def _commit(distribution: importlib.metadata.Distribution) -> str:
    """The commit that a package was installed from, by its PEP 610 record."""
    # Never by its version: those of the pin disagree, and another project uses the name.
    package = f"found {NAME} {distribution.version} from"
    text = distribution.read_text("direct_url.json")
    if text is None:
        raise _not_pinned(f"{package} a package index, where another project has that name")
    try:
        origin = loads(text)
    except ValueError:
        origin = None
    commit = _field(_field(origin, "vcs_info"), "commit_id")
    if isinstance(commit, str):
        return commit
    kind = "a folder" if _field(origin, "dir_info") is not None else "an unknown origin"
    raise _not_pinned(
        f"{package} {kind}, without a commit; "
        "a git checkout at the pin can be named by harness.path"
    )


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _not_pinned(package: str) -> InputError:
    return InputError(
        f"harness.name: upstream needs the benchmark's package at commit {PINNED_COMMIT}: "
        f"{package}; {INSTALL}"
    )


@dataclass(frozen=True, slots=True)
class Package:
    """What we use of the package, under its own names, and untyped, since it may be absent."""

    location: Location
    Runner: Any
    Ledger: Any
    Task: Any
    DecisionResult: Any
    summarize: Any


def load(location: Location) -> Package:
    """Import the package from its location.

    Raises InputError: another one is imported already, or it cannot be imported.
    """
    path, writes_nothing = list(sys.path), sys.dont_write_bytecode
    # There and nowhere else, and nothing is written beside it.
    sys.path.insert(0, str(location.root))
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        runner = importlib.import_module(f"{NAME}.runner")
        package = Package(
            location=location,
            Runner=runner.Runner,
            Ledger=importlib.import_module(f"{NAME}.budget").Ledger,
            Task=importlib.import_module(f"{NAME}.tasks").Task,
            DecisionResult=importlib.import_module(f"{NAME}.adapters.base").DecisionResult,
            summarize=importlib.import_module(f"{NAME}.summarize").summarize,
        )
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"harness.name: {location.root / NAME} cannot be imported: {error}"
        ) from error
    finally:
        sys.path[:] = path
        sys.dont_write_bytecode = writes_nothing
    imported = Path(str(runner.__file__)).resolve().parents[1]
    if imported != location.root:
        raise InputError(
            f"harness.path: {imported / NAME} was imported in this process before; two copies "
            "cannot be used at once"
        )
    # It reports on standard output, which belongs to our progress and tables.
    vars(runner)["print"] = lambda *words, **_: log.info("%s", " ".join(map(str, words)))
    return package


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

    Raises InputError: `checkout` is no such folder.
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

        Raises InputError: an object is missing, is not what its name says, or is too large.
        """
        (data,) = self._read([commit], "commit")
        start = re.match(rb"tree ([0-9a-f]{40})\n", data)
        if start is None:
            raise self._refused(f"the commit {commit} names no tree")
        entries = self._entries(start[1].decode())
        trees = [id_ for mode, name, id_ in entries if name == folder and stat.S_ISDIR(mode)]
        if not trees:
            raise self._refused(f"the commit {commit} has no folder {folder}")
        ids = dict(self._below(trees[0], PurePosixPath(folder)))
        return dict(zip(ids, self._read(list(ids.values()), "blob"), strict=True))

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
            header = line.decode(errors="replace").split(" ")
            if header[1:] == ["missing"]:
                raise self._refused(f"holds no {kind} {object_id}; git fetch origin there")
            if header[:2] != [object_id, kind] or int(header[2]) > MAX_OBJECT_BYTES:
                raise self._refused(f"the {kind} {object_id} is {' '.join(header[1:])} bytes")
        output = self._git("--batch", ids)
        contents, at = [], 0
        for object_id in ids:
            start = re.compile(rb"[0-9a-f]{40} [a-z]+ (\d+)\n").match(output, at)
            if start is None:
                raise self._refused(f"the {kind} {object_id} cannot be read")
            end = start.end() + int(start[1])
            data = output[start.end() : end]
            sha1 = hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)), usedforsecurity=False)
            sha1.update(data)
            if sha1.hexdigest() != object_id:
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
            at = _pointed_at(checkout, at)
            # A work tree has a part of its own, and names the part that all share.
            if (at / "commondir").exists():
                at = _pointed_at(at, at / "commondir")
        if (at / "objects").is_dir():
            return at
    except (OSError, ValueError):
        pass
    raise InputError(f"harness.path: {checkout}: not the top of a git checkout")


def _pointed_at(start: Path, pointer: Path) -> Path:
    """The folder that a file names, seen from `start`; no link is followed."""
    name = os.fsdecode(read_document(pointer, most=_MAX_POINTER_BYTES)).rstrip("\n")
    return Path(os.path.abspath(start / name.removeprefix("gitdir: ")))  # noqa: PTH100
