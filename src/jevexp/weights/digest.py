"""The files of a model: opened, put together from parts, and hashed once until they change.

NAME-00001-of-00003.gguf and its siblings are one identity. The SHA-256 of a whole file is
remembered in the cache folder, one small file for each path.
"""

import hashlib
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rich import progress
from rich.console import Console

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

    Raises WeightsError: no such file, not readable, or not a file.
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

    Raises WeightsError: a part is missing; names it.
    """
    name = _PART.fullmatch(path.name)
    if name is None:
        return (path,)
    count = int(name["count"])
    if not 1 <= int(name["number"]) <= count:
        raise WeightsError(f"{path}: part {int(name['number'])} of {count} cannot be")
    parts = []
    for number in range(1, count + 1):
        part = path.with_name(f"{name['name']}-{number:05}-of-{count:05}.gguf")
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

    Raises WeightsError: the file cannot be read, a part is missing, or it changes while it is read.
    """
    digests = [_remembered(file, show) for file in parts_of(path)]
    if len(digests) == 1:
        return digests[0]
    parts = tuple(digest.sha256 for digest in digests)
    return Digest(
        hashlib.sha256("".join(f"{part}\n" for part in parts).encode()).hexdigest(),
        sum(digest.bytes for digest in digests),
        parts,
        sum(digest.bytes_read for digest in digests),
    )


def _remembered(path: Path, show: Console | None) -> Digest:
    """The digest of one file, which is read again only where it may have changed."""
    # A cache folder that cannot be written is a warning in the log and costs time, no more.
    # Losing what is remembered costs time and nothing else: a cache folder that cannot be written
    # is a warning in the log, and what is there but makes no sense is ignored.
    absolute = str(path.absolute())
    name = hashlib.sha256(os.fsencode(absolute)).hexdigest()
    file = cache_folder() / _FOLDER / f"{name}.json"
    with ExitStack() as stack:
        try:
            # One process at a time; the system frees the lock of one that dies.
            stack.enter_context(locked(file.with_name(f"{file.name}.lock")))
        except OSError as error:
            log.warning("%s: hashes cannot be remembered: %s", file.parent, error.strerror)
        stamp = _stamp(path)
        try:
            entry = loads(read_document(file, most=_MOST_BYTES))
        except (OSError, ValueError):
            entry = None
        facts = {"path": ascii(absolute), **stamp}
        sha256 = entry.get("sha256") if isinstance(entry, dict) else None
        if (
            isinstance(sha256, str)
            and _SHA256.fullmatch(sha256)
            and entry == facts | {"sha256": sha256}
        ):
            return Digest(sha256, stamp["size"], (), 0)
        sha256 = _hash(path, stamp, show)
        # Said when the lock was not to be had, or as good as: the disk is full.
        with suppress(OSError), Folder.named(file.parent) as folder:
            folder.replace(file.name, dumps(facts | {"sha256": sha256}).encode())
        return Digest(sha256, stamp["size"], (), stamp["size"])


def _stamp(path: Path, descriptor: int | None = None) -> dict[str, int]:
    """What tells that a file may have changed: times in nanoseconds, size in bytes."""
    # `ctime_ns` moves also when somebody sets `mtime_ns` back.
    if descriptor is None:
        with opened(path) as file:
            return _stamp(path, file.fileno())
    status = os.fstat(descriptor)
    times = {"mtime_ns": status.st_mtime_ns, "ctime_ns": status.st_ctime_ns}
    return {"size": status.st_size, **times, "inode": status.st_ino}


def _hash(path: Path, stamp: Mapping[str, int], show: Console | None) -> str:
    digest = hashlib.sha256()
    size, read = stamp["size"], 0
    bar = progress.Progress(
        progress.TextColumn("hashing {task.description}", markup=False),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
        console=show,
        transient=True,
        disable=show is None or not show.is_terminal,
    )
    with opened(path) as file, bar:
        task = bar.add_task(path.name, total=size)
        # One byte more than expected tells a file that grows.
        while read <= size and (chunk := file.read(_CHUNK_BYTES)):
            digest.update(chunk)
            read += len(chunk)
            bar.advance(task, len(chunk))
        after = _stamp(path, file.fileno())
    if read != size or after != stamp or _stamp(path) != stamp:
        raise WeightsError(f"{path}: changed while it was hashed; wait until it is complete")
    return digest.hexdigest()
