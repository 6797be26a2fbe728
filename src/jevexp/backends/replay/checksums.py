"""Whether an earlier run's directory is still as the run left it."""

import hashlib
from pathlib import Path, PurePosixPath

from jevexp.errors import InputError

CHECKSUMS = "checksums.sha256"


def verify(directory: Path) -> tuple[str, frozenset[str]]:
    """Hash every file that the run's checksums name.

    Returns:
        The SHA-256 of the checksums' file itself, and the names that it covers.

    Raises:
        InputError: there are no checksums, or a file is not the one they were made of.
    """
    data = _bytes(directory / CHECKSUMS, "a run that was killed has none, and cannot be replayed")
    covered = set()
    for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
        digest, _, name = line.partition("  ")
        path = PurePosixPath(name)
        if len(digest) != 64 or not name or path.is_absolute() or ".." in path.parts:
            raise InputError(f"backend.run: {directory / CHECKSUMS}:{number}: not a checksum")
        found = hashlib.sha256(_bytes(directory / path, "the run left it there")).hexdigest()
        if found != digest:
            raise InputError(
                f"backend.run: {directory / path}: was changed after the run: its SHA-256 is not "
                f"the one in {CHECKSUMS}"
            )
        covered.add(name)
    return hashlib.sha256(data).hexdigest(), frozenset(covered)


def _bytes(path: Path, remark: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"backend.run: {path}: {error.strerror}; {remark}") from error
