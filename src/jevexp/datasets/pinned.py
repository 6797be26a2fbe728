"""Pinned task files: downloaded once, proven by size and SHA-256, and kept by content.

The cache keeps a file at datasets/<sha256>/<name> below the cache folder.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from io import BufferedWriter
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import quote

import httpx
from rich.console import Console

from jevexp.errors import InputError
from jevexp.settings import Dataset, PinnedFile
from jevexp.store.cache import cache_folder
from jevexp.store.checksums import file_sha256
from jevexp.untrusted.addresses import check_address
from jevexp.untrusted.http import Bounds, bounded_client
from jevexp.untrusted.locks import LockHeld, locked
from jevexp.untrusted.writing import Folder


def difference(path: Path, pin: PinnedFile) -> str | None:
    """What sets a file apart from its pin, or None where its bytes are the pinned ones.

    Raises OSError: the file cannot be read.
    """
    size = path.stat().st_size
    if size != pin.bytes:
        return f"expected {pin.bytes} bytes, found {size}"
    sha256 = file_sha256(path, follow_links=True)
    return None if sha256 == pin.sha256 else f"expected sha256 {pin.sha256}, found {sha256}"


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a download may take, in seconds: to connect, between two reads, as a whole."""

    connect_s: float = 10.0
    read_s: float = 30.0
    total_s: float = 300.0


LIMITS = Limits()


class FileState(StrEnum):
    """What the cache holds of a pinned file; one that cannot be read counts as damaged."""

    CACHED = "cached"
    MISSING = "missing"
    DAMAGED = "damaged"


def cached_path(pin: PinnedFile) -> Path:
    """Where the cache keeps a pinned file."""
    return cache_folder() / "datasets" / pin.sha256 / PurePosixPath(pin.path).name


def file_state(pin: PinnedFile) -> FileState:
    """Hash the cached file, if there is one."""
    try:
        return FileState.DAMAGED if difference(cached_path(pin), pin) else FileState.CACHED
    except FileNotFoundError:
        return FileState.MISSING
    except OSError:
        return FileState.DAMAGED


def fetch(
    pin: PinnedFile, url: str, *, show: Console | None = None, limits: Limits = LIMITS
) -> Path:
    """The cached file, verified; downloaded where the cache has none or a damaged one.

    Of several processes one downloads, and the others wait and use its file.

    Raises InputError: no such bytes are to be had, or the cache folder cannot be written.
    """
    path = cached_path(pin)
    try:
        # Without the lock first: a filled cache may be read-only.
        if file_state(pin) is FileState.CACHED:
            return path
        lock = path.parent.with_name(f"{path.parent.name}.lock")
        with locked(lock, limits.total_s + limits.connect_s):
            if file_state(pin) is not FileState.CACHED:
                with Folder.named(path.parent) as folder:
                    # When the download fails, damaged bytes must not stay behind.
                    with suppress(FileNotFoundError):
                        folder.remove(path.name)
                    # One name is enough, since the lock is held.
                    with folder.replacing(path.name, f".{path.name}.part") as raw:
                        file = BufferedWriter(raw)
                        download(url, file, pin, show=show, limits=limits)
                        file.flush()
                        file.detach()
    except LockHeld as error:
        raise InputError(f"{path}: is being downloaded: {error.strerror}") from error
    except OSError as error:
        raise InputError(
            f"{error.filename or path}: cannot use the dataset cache: {error.strerror or error}; "
            "the environment variable JEVEXP_CACHE moves it"
        ) from error
    return path


def pinned_url(dataset: Dataset, pin: PinnedFile) -> str:
    """Where a pinned file is published.

    Raises:
        InputError: the dataset does not say, or its address is neither https nor on this machine.
    """
    for field in ("base_url", "repository", "commit"):
        if not getattr(dataset, field):
            raise InputError(f"dataset.{field}: missing; a pinned dataset needs it to download")
    base, field = str(dataset.base_url), "dataset.base_url"
    try:
        check_address(base, field=field, allow_http=False, key_field=None, way_out=None)
    except ValueError as error:
        raise InputError(str(error)) from error
    path = quote(f"{dataset.repository}/{dataset.commit}/{pin.path}")
    return f"{base.rstrip('/')}/{path}"


def download(
    url: str,
    file: IO[bytes],
    pin: PinnedFile,
    *,
    show: Console | None = None,
    limits: Limits = LIMITS,
) -> None:
    """Write the pinned bytes to `file`; what is written before an error is worthless.

    Redirects are refused, since the pin names one address. No more than the pinned size is read. On
    a terminal `show` draws a progress bar.

    Raises InputError: the cause, and three ways out.
    """
    digest = hashlib.sha256()
    size = 0
    try:
        with _chunks(url, pin.bytes, limits) as chunks, _progress(pin, show) as advance:
            for chunk in chunks:
                size += len(chunk)
                if size > pin.bytes:
                    raise _Refused(f"it sends more than the pinned {pin.bytes} bytes")
                digest.update(chunk)
                file.write(chunk)
                advance(len(chunk))
        if size < pin.bytes:
            raise _Refused(f"expected {pin.bytes} bytes, found {size}")
        if (sha256 := digest.hexdigest()) != pin.sha256:
            raise _Refused(f"expected sha256 {pin.sha256}, found {sha256}")
    except (_Refused, httpx.HTTPError) as error:
        raise InputError(
            f"{url}: {_cause(error, limits)}; run `jevexp data pull` later, point dataset.path at "
            "a copy, or use dataset=demo"
        ) from error


class _Refused(Exception):
    """What arrives is not wanted."""


@contextmanager
def _chunks(url: str, most_bytes: int, limits: Limits) -> Iterator[Iterator[bytes]]:
    """The response's bytes as they come, until the whole takes too long."""
    bounds = Bounds()
    # Unpacked content would be measured after it has filled the memory.
    headers = {"Accept-Encoding": "identity"}
    timeout = httpx.Timeout(min(limits.read_s, limits.total_s), connect=limits.connect_s)
    try:
        client = bounded_client(bounds, url, timeout, headers)
    except ValueError as error:
        raise _Refused(f"no HTTP client: {error}") from error
    with client, bounds.within(limits.total_s, most_bytes) as allowance:
        try:
            with client.stream("GET", url) as response:
                if response.is_redirect:
                    raise _Refused(
                        f"HTTP {response.status_code}, a redirect, which is not followed"
                    )
                if response.status_code != httpx.codes.OK:
                    raise _Refused(f"HTTP {response.status_code}")
                yield response.iter_raw()
        except httpx.TimeoutException as error:
            if allowance.passed:
                raise _Refused(f"not complete after {limits.total_s:g} s") from error
            raise


def _cause(error: Exception, limits: Limits) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    match error:
        case _Refused():
            return words
        case httpx.ConnectTimeout():
            return f"no connection within {limits.connect_s:g} s"
        case httpx.TimeoutException():
            return f"no answer for {min(limits.read_s, limits.total_s):g} s"
        case httpx.ConnectError():
            return f"no connection: {words}"
        case _:
            return f"the connection broke: {words}"


@contextmanager
def _progress(pin: PinnedFile, show: Console | None) -> Iterator[Callable[[int], None]]:
    if show is None or not show.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    with Progress(*columns, console=show, transient=True) as progress:
        bar = progress.add_task(pin.path, total=pin.bytes)
        yield lambda count: progress.advance(bar, count)
