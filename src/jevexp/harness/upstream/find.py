"""Where the pinned harness is, and whether it is the pinned one."""

import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Literal

from jevexp.core.json import loads
from jevexp.errors import InputError
from jevexp.harness.upstream.git_objects import GitObjects
from jevexp.settings import PINNED_COMMIT
from jevexp.untrusted.writing import make_folders, write_new

NAME = "jevbench"
INSTALL = "pip install 'jevexp[upstream]'"
# By commit. Modules of the package may be imported until the end.
_folders: dict[str, TemporaryDirectory[str]] = {}


@dataclass(frozen=True, slots=True)
class Location:
    """A copy of the package at the pin; `root` is the folder that holds `jevbench`.

    Of a checkout that is a folder of ours, with the files as they are in the commit's objects.
    """

    root: Path
    origin: Literal["installed package", "git checkout"]


def find(path: str | None) -> Location:
    """The checkout at `path`, or the installed package where that is null.

    Raises:
        InputError: what is there is not the pinned commit; names it, and how to get that.
    """
    return _installed() if path is None else _checkout(Path(path).expanduser())


def _installed() -> Location:
    # A provider's own code is looked for in the current folder too, which installs nothing.
    places = [place for place in sys.path if place not in ("", os.getcwd())]  # noqa: PTH109
    found = next(iter(importlib.metadata.distributions(name=NAME, path=places)), None)
    if found is None:
        raise _not_pinned("it is not installed")
    commit = _commit(found)
    if commit != PINNED_COMMIT:
        raise _not_pinned(f"found {NAME} at commit {commit}")
    package = Path(str(found.locate_file(NAME))).resolve()
    spec = importlib.util.find_spec(NAME)
    imported = Path(spec.origin).resolve().parent if spec and spec.origin else None
    if imported != package:
        raise InputError(
            f"harness.name: importing {NAME} finds {imported or 'no package'} instead of the "
            f"installed {package}; start jevexp in another folder"
        )
    return Location(package.parent, "installed package")


def _commit(found: importlib.metadata.Distribution) -> str:
    """The commit that a package was installed from, by its PEP 610 record.

    Never by its version: those of the pin disagree, and another project uses the name.
    """
    text = found.read_text("direct_url.json")
    if text is None:
        raise _not_pinned(
            f"found {NAME} {found.version} from a package index, where another project has "
            "that name"
        )
    try:
        origin = loads(text)
    except ValueError:
        origin = None
    commit = _field(_field(origin, "vcs_info"), "commit_id")
    if isinstance(commit, str):
        return commit
    kind = "a folder" if _field(origin, "dir_info") is not None else "an unknown origin"
    raise _not_pinned(
        f"found {NAME} {found.version} from {kind}, without a commit; a git checkout at the pin "
        "can be named by harness.path"
    )


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _not_pinned(found: str) -> InputError:
    return InputError(
        f"harness.name: upstream needs the benchmark's package at commit {PINNED_COMMIT}: "
        f"{found}; {INSTALL}"
    )


def _checkout(path: Path) -> Location:
    if not path.is_dir():
        raise InputError(f"harness.path: {path}: no such folder; {INSTALL}, or name a checkout")
    with TemporaryDirectory(prefix="jevexp-git-") as private:
        files = GitObjects(path, Path(private)).files(PINNED_COMMIT, NAME)
    return Location(_unpacked(PINNED_COMMIT, files), "git checkout")


def _unpacked(commit: str, files: Mapping[PurePosixPath, bytes]) -> Path:
    """A folder with these files alone, one a commit, until the process ends."""
    if commit not in _folders:
        folder = TemporaryDirectory(prefix="jevexp-harness-")
        root = Path(folder.name).resolve()
        for name, data in files.items():
            make_folders(root / name.parent)
            write_new(root / name, data)
        _folders[commit] = folder
    return Path(_folders[commit].name).resolve()
