"""Where the pinned harness is, and whether it is the pinned one."""

import importlib.metadata
import importlib.util
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jevexp.core.json import loads
from jevexp.errors import InputError
from jevexp.harness.pin import PINNED_COMMIT

NAME = "jevbench"
INSTALL = "pip install 'jevexp[upstream]'"


@dataclass(frozen=True, slots=True)
class Location:
    """A copy of the package at the pin; `root` is the folder that holds `jevbench`."""

    root: Path
    origin: Literal["installed package", "git checkout"]


def find(path: str | None) -> Location:
    """The checkout at `path`, or the installed package where that is null.

    Raises:
        InputError: what is there is not the pinned commit; names it, and how to get that.
    """
    return _installed() if path is None else _checkout(Path(path).expanduser())


def _installed() -> Location:
    try:
        found = importlib.metadata.distribution(NAME)
    except importlib.metadata.PackageNotFoundError as error:
        raise _not_pinned("it is not installed") from error
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
    top, commit = _git(path, "rev-parse", "--show-toplevel", "HEAD").splitlines()
    if Path(top).resolve() != path.resolve():
        raise InputError(f"harness.path: {path} is inside the git checkout {top}; name its top")
    if commit != PINNED_COMMIT:
        raise InputError(
            f"harness.path: {path} is at commit {commit}; git checkout {PINNED_COMMIT} there, or "
            f"{INSTALL}"
        )
    if changes := _git(path, "status", "--porcelain", "--untracked-files=all").splitlines():
        raise InputError(
            f"harness.path: {path} is not the commit alone: {changes[0].strip()!r}; it has to be "
            "a clean checkout"
        )
    return Location(path.resolve(), "git checkout")


def _git(path: Path, *arguments: str) -> str:
    # Only the folder decides which repository it is, and nothing in it runs.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(path), "-c", "core.fsmonitor=false", *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=True, env=environment
        )
    except subprocess.CalledProcessError as error:
        raise InputError(f"harness.path: {path}: not a git checkout that git can read") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError(f"harness.path: {path}: git cannot be run") from error
    return done.stdout
