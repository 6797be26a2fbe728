"""Finding a model's weights on this machine: a path, or a package that ships them.

A package is read through its metadata only; no code that a configuration names is ever run.
"""

import hashlib
import re
from collections.abc import Iterator
from importlib import metadata
from io import FileIO
from pathlib import Path

from jevexp.errors import InputError
from jevexp.settings import ModelIdentity
from jevexp.store.cache import cache_folder
from jevexp.untrusted.files import opened
from jevexp.untrusted.locks import locked
from jevexp.untrusted.writing import Folder, write_all

_CHUNK_BYTES = 1 << 20


def find_weights(model: ModelIdentity) -> Path | None:
    """The file with the model's weights, or None where the configuration names none.

    `model.weights.path` comes first. A package ships the file whole, or as `FILE.part00`,
    `FILE.part01` and so on in packages that it requires; the parts are put together once, in the
    cache, and only if their SHA-256 is the one in `model.weights.sha256`.

    Raises:
        InputError: the path does not exist, the package is not installed or ships no such file.
    """
    weights = model.weights
    if weights.path is not None:
        path = Path(weights.path).expanduser()
        if not path.is_file():
            raise InputError(f"model.weights.path: no such file: {path}; give the GGUF file's path")
        return path
    if weights.package is None:
        return None
    if weights.file is None or Path(weights.file).name != weights.file:
        raise InputError(
            f"model.weights.file: expected the name of a file in {weights.package.name}, "
            f"found {weights.file!r}"
        )
    try:
        shipped = list(_shipped(weights.package.name))
    except metadata.PackageNotFoundError as error:
        raise InputError(
            f"model.weights.package: {error.name} is not installed; {weights.package.install}"
        ) from error
    whole = [path for path in shipped if path.name == weights.file]
    if whole:
        return whole[0]
    part = re.compile(re.escape(weights.file) + r"\.part\d+")
    parts = sorted((path for path in shipped if part.fullmatch(path.name)), key=lambda p: p.name)
    if not parts:
        raise InputError(
            f"model.weights.file: {weights.package.name} ships no {weights.file}; "
            f"{weights.package.install}"
        )
    if weights.sha256 is None:
        raise InputError("model.weights.sha256: missing; weights in parts need it to be checked")
    return _assembled(parts, weights.file, weights.sha256)


def _shipped(distribution: str) -> Iterator[Path]:
    """Every file of the installed distribution, then of those whose name extends its own."""
    for file in metadata.files(distribution) or ():
        yield Path(str(file.locate()))
    for requirement in metadata.requires(distribution) or ():
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        if name and name.group().startswith(f"{distribution}-"):
            yield from _shipped(name.group())


def _assembled(parts: list[Path], name: str, sha256: str) -> Path:
    """The parts as one file, written beside its final place so that a half never looks whole."""
    target = cache_folder() / "weights" / sha256 / name
    if target.is_file():
        return target
    try:
        with locked(target.with_name(f"{name}.lock")):
            if not target.is_file():
                with (
                    Folder.named(target.parent) as folder,
                    folder.replacing(name, f"{name}.partial") as whole,
                ):
                    _concatenate(parts, whole, sha256)
    except OSError as error:
        raise InputError(
            f"{error.filename or target}: cannot use the cache: {error.strerror or error}; the "
            "environment variable JEVEXP_CACHE moves it"
        ) from error
    return target


def _concatenate(parts: list[Path], whole: FileIO, sha256: str) -> None:
    digest = hashlib.sha256()
    for part in parts:
        with opened(part) as piece:
            while chunk := piece.read(_CHUNK_BYTES):
                digest.update(chunk)
                write_all(whole, chunk)
    if digest.hexdigest() != sha256:
        raise InputError(
            f"model.weights.sha256: expected {sha256}, found {digest.hexdigest()} in {len(parts)} "
            "parts; reinstall the package"
        )
