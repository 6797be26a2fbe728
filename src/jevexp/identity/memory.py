"""What is remembered about a file's hash: one small file a path, in the cache folder."""

import hashlib
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from filelock import FileLock

from jevexp.backends.weights import cache_root
from jevexp.core.json import dumps, loads
from jevexp.untrusted.files import read_document

log = logging.getLogger(__name__)

_FOLDER = "hashes"
# A path and a few numbers.
_MOST_BYTES = 64 << 10
_SHA256 = re.compile(r"[0-9a-f]{64}")


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


class Memory:
    """The hash of the file at one absolute path.

    Losing it costs time and nothing else: a cache folder that cannot be written is a warning in
    the log, and what is there but makes no sense is ignored.
    """

    def __init__(self, path: Path) -> None:
        self._path = str(path.absolute())
        name = hashlib.sha256(os.fsencode(self._path)).hexdigest()
        self._entry = cache_root() / _FOLDER / f"{name}.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time; the system frees the lock of one that dies."""
        lock = FileLock(f"{self._entry}.lock")
        try:
            self._entry.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except OSError as error:
            log.warning("%s: hashes cannot be remembered: %s", self._entry.parent, error.strerror)
            yield
            return
        try:
            yield
        finally:
            lock.release()

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
        partial = self._entry.with_suffix(f".{os.getpid()}.part")
        try:
            partial.write_text(dumps(self._content(stamp, sha256)), encoding="utf-8")
            partial.replace(self._entry)
        except OSError:
            # Said when the lock was not to be had, or as good as: the disk is full.
            with suppress(OSError):
                partial.unlink()

    def _content(self, stamp: Stamp, sha256: str) -> dict[str, str | int]:
        return {"path": ascii(self._path), **asdict(stamp), "sha256": sha256}
