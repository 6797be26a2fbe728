"""Whether a file's bytes are the pinned ones."""

import hashlib
from pathlib import Path

from jevexp.settings import PinnedFile
from jevexp.untrusted.files import opened


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, as lower-case hex.

    Raises:
        OSError: the file cannot be read.
    """
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def difference(path: Path, pin: PinnedFile) -> str | None:
    """What sets a file apart from its pin, or None where its bytes are the pinned ones.

    Raises:
        OSError: the file cannot be read.
    """
    size = path.stat().st_size
    if size != pin.bytes:
        return f"expected {pin.bytes} bytes, found {size}"
    found = sha256_of(path)
    return None if found == pin.sha256 else f"expected sha256 {pin.sha256}, found {found}"
