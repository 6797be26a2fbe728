"""The file with a model's weights: named, shipped by a package, or put together from parts."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from importlib import metadata
from io import FileIO
from pathlib import Path

from jevexp.errors import InputError
from jevexp.settings import LlamaServer, ModelIdentity
from jevexp.store.cache import cache_folder
from jevexp.untrusted.files import opened
from jevexp.untrusted.locks import locked
from jevexp.untrusted.writing import Folder, write_all
from jevexp.weights.digest import WeightsError
from jevexp.weights.gguf import read_header


def weights_to_serve(
    server: LlamaServer, model: ModelIdentity, *, assemble: bool = True
) -> Path | None:
    """The file to start a server for, or None where a running server is to be used.

    Parts that are not put together yet are left so without `assemble`, and there is no file then.
    Raises InputError where the configuration names weights that are not on this machine.
    """
    if server.base_url is not None:
        return None
    if server.gguf is not None:
        return Path(server.gguf).expanduser()
    return find_weights(model, assemble=assemble)


def find_weights(model: ModelIdentity, *, assemble: bool = True) -> Path | None:
    """The file with the model's weights, or None where the configuration names none.

    `model.weights.path` comes first. A package ships the file whole, or as `FILE.part00`,
    `FILE.part01` and so on in packages that it requires; the parts are put together once, in the
    cache, and only if their SHA-256 is the one in `model.weights.sha256`. Raises InputError where
    the path does not exist, the package is not installed or ships no such file.
    """
    weights, package = model.weights, model.weights.package
    if weights.path is not None:
        path = Path(weights.path).expanduser()
        if not path.is_file():
            raise InputError(f"model.weights.path: no such file: {path}; give the GGUF file's path")
        return path
    if package is None:
        return None
    if weights.file is None or Path(weights.file).name != weights.file:
        raise InputError(
            f"model.weights.file: expected the name of a file in {package.name}, "
            f"found {weights.file!r}"
        )
    try:
        shipped = {path.name: path for path in reversed(list(_shipped(package.name)))}
    except metadata.PackageNotFoundError as error:
        raise InputError(
            f"model.weights.package: {error.name} is not installed; {package.install}"
        ) from error
    if weights.file in shipped:
        return shipped[weights.file]
    part = re.compile(re.escape(weights.file) + r"\.part\d+")
    parts = [shipped[name] for name in sorted(shipped) if part.fullmatch(name)]
    if not parts:
        raise InputError(
            f"model.weights.file: {package.name} ships no {weights.file}; {package.install}"
        )
    if weights.sha256 is None:
        raise InputError("model.weights.sha256: missing; weights in parts need it to be checked")
    return _assembled(parts, weights.file, weights.sha256, assemble=assemble)


def decision_type_of(gguf: Path) -> str | None:
    """The decision type in a file's header; None where there is none, or no header to read."""
    try:
        decision = read_header(gguf).decision
    except WeightsError:
        # The server that cannot load it says why.
        return None
    return decision.type if decision else None


def _shipped(distribution: str) -> Iterator[Path]:
    """Every file of the installed distribution, then of those whose name extends its own."""
    for file in metadata.files(distribution) or ():
        yield Path(str(file.locate()))
    for requirement in metadata.requires(distribution) or ():
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        if name and name.group().startswith(f"{distribution}-"):
            yield from _shipped(name.group())


def _assembled(parts: Sequence[Path], name: str, sha256: str, *, assemble: bool) -> Path | None:
    """The parts as one file, written beside its final place so that a half never looks whole."""
    target = cache_folder() / "weights" / sha256 / name
    if target.is_file():
        return target
    if not assemble:
        return None
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


def _concatenate(parts: Sequence[Path], whole: FileIO, sha256: str) -> None:
    digest = hashlib.sha256()
    for part in parts:
        with opened(part) as piece:
            while chunk := piece.read(1 << 20):
                digest.update(chunk)
                write_all(whole, chunk)
    if digest.hexdigest() != sha256:
        raise InputError(
            f"model.weights.sha256: expected {sha256}, found {digest.hexdigest()} in {len(parts)} "
            "parts; reinstall the package"
        )
