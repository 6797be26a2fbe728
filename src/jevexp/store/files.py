"""Writing files so that a crash leaves the old state or the new one, and never half of either."""

import os
from contextlib import suppress
from io import FileIO
from pathlib import Path


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable, as fsync does for a file's bytes."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(file: FileIO, data: bytes) -> None:
    """Write all of `data` and force it to disk.

    The file has no buffer: what a full disk refused would be tried again when it is closed.
    """
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
    os.fsync(file.fileno())


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet.

    Raises:
        FileExistsError: it exists; nothing was touched.
    """
    with path.open("xb", buffering=0) as file:
        write_durably(file, data)


def replace(path: Path, data: bytes) -> None:
    """Replace a file's content in one step: readers see all of the old or all of the new."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        with temporary.open("wb", buffering=0) as file:
            write_durably(file, data)
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(path.parent)
