"""SHA-256 of a model's whole file, read once and remembered until the file changes."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from jevexp.identity.files import WeightsError, opened
from jevexp.identity.memory import Memory, Stamp
from jevexp.identity.parts import parts_of

_CHUNK_BYTES = 1 << 20


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
    files = parts_of(path)
    hashes = [_remembered(file, show) for file in files]
    size = sum(one.bytes for one in hashes)
    read = sum(one.bytes_read for one in hashes)
    if len(hashes) == 1:
        return Digest(hashes[0].sha256, size, (), read)
    parts = tuple(one.sha256 for one in hashes)
    whole = hashlib.sha256("".join(f"{part}\n" for part in parts).encode()).hexdigest()
    return Digest(whole, size, parts, read)


def _remembered(path: Path, show: Console | None) -> Digest:
    memory = Memory(path)
    with memory.locked():
        stamp = _stamp(path)
        if known := memory.recall(stamp):
            return Digest(known, stamp.size, (), 0)
        sha256 = _hash(path, stamp, show)
        memory.keep(stamp, sha256)
        return Digest(sha256, stamp.size, (), stamp.size)


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
