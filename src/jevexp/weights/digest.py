"""The files of a model: opened, put together from parts, and hashed once until they change.

NAME-00001-of-00003.gguf and its siblings are one identity. The SHA-256 of a whole file is
remembered in the cache folder, one small file for each path.
"""

import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from jevexp.core.json import dumps, loads
from jevexp.errors import InputError
from jevexp.store.cache import cache_folder
from jevexp.untrusted import files
from jevexp.untrusted.files import read_document
from jevexp.untrusted.locks import locked
from jevexp.untrusted.writing import Folder

log = logging.getLogger(__name__)
_PART = re.compile(r"(?P<name>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)
_CHUNK_BYTES = 1 << 20
_FOLDER = "hashes"
# A path and a few numbers.
_MOST_BYTES = 64 << 10
_SHA256 = re.compile(r"[0-9a-f]{64}")


class WeightsError(InputError):
    """A file of weights cannot be used: its path, and what was found there."""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The regular file at `path`, open for reading; what fails while it is read is explained too.

    Raises:
        WeightsError: no such file, not readable, or not a file.
    """
    try:
        with files.opened(path) as file:
            yield file
    except files.NotAFile as error:
        raise WeightsError(f"{error.filename}: {error.strerror}") from error
    except OSError as error:
        raise WeightsError(f"{path}: cannot be read: {error.strerror or error}") from error


def parts_of(path: Path) -> tuple[Path, ...]:
    """Every file of the model that `path` is a part of, in order; `path` alone where it is whole.

    Raises:
        WeightsError: a part is missing; names it.
    """
    found = _PART.fullmatch(path.name)
    if found is None:
        return (path,)
    count = int(found["count"])
    if not 1 <= int(found["number"]) <= count:
        raise WeightsError(f"{path}: part {int(found['number'])} of {count} cannot be")
    parts = []
    for number in range(1, count + 1):
        part = path.with_name(f"{found['name']}-{number:05}-of-{count:05}.gguf")
        # One by one, so that a name that claims 99,999 parts is refused at the first one missing.
        if not part.exists():
            raise WeightsError(f"{part}: missing; part {number} of {count}")
        parts.append(part)
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class Digest:
    """A model's bytes.

    Attributes:
        sha256: of the file. Of a split model: of its parts' hashes in hex, in order, each followed
            by a newline, so that a renamed model is the same one.
        bytes: size of the file, or of all parts.
        parts: each part's SHA-256; empty where the model is one file.
        bytes_read: what this call had to read; 0 where all was remembered.
    """

    sha256: str
    bytes: int
    parts: tuple[str, ...]
    bytes_read: int


def file_sha256(path: Path, *, show: Console | None = None) -> Digest:
    """The digest of the file at `path`, or of the split model that it is a part of.

    Processes that start at once read the file once: the others wait and use the first one's hash.

    Args:
        path: any part of a split model stands for all of it.
        show: draws a progress bar when it is a terminal.

    Raises:
        WeightsError: the file cannot be read, a part is missing, or it changes while it is read.
    """
    parts_of_model = parts_of(path)
    hashes = [_remembered(file, show) for file in parts_of_model]
    size = sum(one.bytes for one in hashes)
    read = sum(one.bytes_read for one in hashes)
    if len(hashes) == 1:
        return Digest(hashes[0].sha256, size, (), read)
    parts = tuple(one.sha256 for one in hashes)
    whole = hashlib.sha256("".join(f"{part}\n" for part in parts).encode()).hexdigest()
    return Digest(whole, size, parts, read)


def _remembered(path: Path, show: Console | None) -> Digest:
    cache = HashCache(path)
    with cache.locked():
        stamp = _stamp(path)
        if known := cache.recall(stamp):
            return Digest(known, stamp.size, (), 0)
        sha256 = _hash(path, stamp, show)
        cache.keep(stamp, sha256)
        return Digest(sha256, stamp.size, (), stamp.size)


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells that a file may have changed: times in nanoseconds, size in bytes.

    `ctime_ns` moves also when somebody sets `mtime_ns` back.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        """The stamp of an open file."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _stamp(path: Path) -> Stamp:
    with opened(path) as file:
        return Stamp.of(os.fstat(file.fileno()))


def _hash(path: Path, stamp: Stamp, show: Console | None) -> str:
    digest = hashlib.sha256()
    read = 0
    with opened(path) as file, _progress(path, stamp.size, show) as advance:
        # One byte more than expected tells a file that grows.
        while read <= stamp.size and (chunk := file.read(_CHUNK_BYTES)):
            digest.update(chunk)
            read += len(chunk)
            advance(len(chunk))
        after = Stamp.of(os.fstat(file.fileno()))
    if read != stamp.size or after != stamp or _stamp(path) != stamp:
        raise WeightsError(f"{path}: changed while it was hashed; wait until it is complete")
    return digest.hexdigest()


@contextmanager
def _progress(path: Path, size: int, show: Console | None) -> Iterator[Callable[[int], None]]:
    if show is None or not show.is_terminal:
        yield lambda _: None
        return
    bar = Progress(
        TextColumn("hashing {task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=show,
        transient=True,
    )
    with bar:
        task = bar.add_task(path.name, total=size)
        yield lambda count: bar.advance(task, count)


class HashCache:
    """The hash of the file at one absolute path.

    Losing it costs time and nothing else: a cache folder that cannot be written is a warning in
    the log, and what is there but makes no sense is ignored.
    """

    def __init__(self, path: Path) -> None:
        self._path = str(path.absolute())
        name = hashlib.sha256(os.fsencode(self._path)).hexdigest()
        self._entry = cache_folder() / _FOLDER / f"{name}.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time; the system frees the lock of one that dies."""
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(self._entry.with_name(f"{self._entry.name}.lock")))
            except OSError as error:
                place = self._entry.parent
                log.warning("%s: hashes cannot be remembered: %s", place, error.strerror)
            yield

    def recall(self, stamp: Stamp) -> str | None:
        """The SHA-256 of the file as `stamp` describes it, or None."""
        try:
            entry = loads(read_document(self._entry, most=_MOST_BYTES))
        except (OSError, ValueError):
            return None
        if not isinstance(entry, dict) or not isinstance(sha256 := entry.get("sha256"), str):
            return None
        same = entry == self._content(stamp, sha256)
        return sha256 if same and _SHA256.fullmatch(sha256) else None

    def keep(self, stamp: Stamp, sha256: str) -> None:
        """Remember; the file is replaced as a whole, so that nobody ever reads half of it."""
        # Said when the lock was not to be had, or as good as: the disk is full.
        with suppress(OSError), Folder.named(self._entry.parent) as folder:
            folder.replace(self._entry.name, dumps(self._content(stamp, sha256)).encode())

    def _content(self, stamp: Stamp, sha256: str) -> dict[str, str | int]:
        return {"path": ascii(self._path), **asdict(stamp), "sha256": sha256}
