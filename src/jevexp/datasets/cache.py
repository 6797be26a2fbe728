"""Downloaded task files, kept by content: datasets/<sha256>/<name> below the cache folder."""

from contextlib import suppress
from enum import StrEnum
from io import BufferedWriter
from pathlib import Path, PurePosixPath

from rich.console import Console

from jevexp.datasets.download import LIMITS, Limits, download
from jevexp.datasets.verify import difference
from jevexp.errors import InputError
from jevexp.settings import PinnedFile
from jevexp.store.cache import cache_folder
from jevexp.untrusted.locks import LockHeld, locked
from jevexp.untrusted.writing import Folder


class FileState(StrEnum):
    """What the cache holds of a pinned file; one that cannot be read counts as damaged."""

    CACHED = "cached"
    MISSING = "missing"
    DAMAGED = "damaged"


def cached_path(pin: PinnedFile, cache: Path | None = None) -> Path:
    """Where the cache keeps a pinned file; `cache` None means `cache_folder()`."""
    return (cache or cache_folder()) / "datasets" / pin.sha256 / PurePosixPath(pin.path).name


def file_state(pin: PinnedFile, cache: Path | None = None) -> FileState:
    """Hash the cached file, if there is one."""
    path = cached_path(pin, cache)
    try:
        return FileState.DAMAGED if difference(path, pin) else FileState.CACHED
    except FileNotFoundError:
        return FileState.MISSING
    except OSError:
        return FileState.DAMAGED


def fetch(
    pin: PinnedFile,
    url: str,
    *,
    cache: Path | None = None,
    show: Console | None = None,
    limits: Limits = LIMITS,
) -> Path:
    """The cached file, verified; downloaded where the cache has none or a damaged one.

    Processes that start at once download once: the others wait and use the first one's file.

    Raises:
        InputError: no such bytes are to be had, or the cache folder cannot be written.
    """
    path = cached_path(pin, cache)
    try:
        # Without the lock first: a filled cache may be read-only.
        if file_state(pin, cache) is FileState.CACHED:
            return path
        lock = path.parent.with_name(f"{path.parent.name}.lock")
        with locked(lock, limits.total_s + limits.connect_s):
            if file_state(pin, cache) is not FileState.CACHED:
                _download(pin, url, path, show=show, limits=limits)
    except LockHeld as error:
        raise InputError(f"{path}: is being downloaded: {error.strerror}") from error
    except OSError as error:
        raise InputError(
            f"{error.filename or path}: cannot use the dataset cache: {error.strerror or error}; "
            "the environment "
            "variable JEVEXP_CACHE moves it"
        ) from error
    return path


def _download(
    pin: PinnedFile, url: str, path: Path, *, show: Console | None, limits: Limits
) -> None:
    with Folder.named(path.parent) as folder:
        # Damaged bytes are not to be found there should no others be had.
        with suppress(FileNotFoundError):
            folder.remove(path.name)
        # One name is enough, since the lock is held.
        with folder.replacing(path.name, f".{path.name}.part") as raw:
            file = BufferedWriter(raw)
            download(url, file, pin, show=show, limits=limits)
            file.flush()
            file.detach()
