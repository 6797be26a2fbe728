"""Whether an earlier run's directory is still as the run left it."""

import hashlib
from pathlib import Path, PurePosixPath

from jevexp.errors import InputError
from jevexp.untrusted.files import TooLong, opened, read_document

CHECKSUMS = "checksums.sha256"


def verify(directory: Path, *, at: str = "backend.run") -> tuple[str, frozenset[str]]:
    """Hash every file that the run's checksums name.

    Args:
        directory: the run's directory.
        at: the field that named it, for messages.

    Returns:
        The SHA-256 of the checksums' file itself, and the names that it covers.

    Raises:
        InputError: there are no checksums, or a file is not the one they were made of.
    """
    try:
        data = read_document(directory / CHECKSUMS, follow_links=False)
    except (OSError, TooLong) as error:
        raise _unreadable(
            at,
            directory / CHECKSUMS,
            error,
            "a run that was killed has none, and cannot be replayed",
        ) from error
    covered = set()
    for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
        digest, _, name = line.partition("  ")
        path = PurePosixPath(name)
        if len(digest) != 64 or not name or path.is_absolute() or ".." in path.parts:
            raise InputError(f"{at}: {directory / CHECKSUMS}:{number}: not a checksum")
        try:
            with opened(directory / path, follow_links=False) as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise _unreadable(at, directory / path, error, "the run left it there") from error
        if found != digest:
            raise InputError(
                f"{at}: {directory / path}: was changed after the run: its SHA-256 is not "
                f"the one in {CHECKSUMS}"
            )
        covered.add(name)
    return hashlib.sha256(data).hexdigest(), frozenset(covered)


def _unreadable(at: str, path: Path, error: OSError | TooLong, remark: str) -> InputError:
    reason = error.strerror if isinstance(error, OSError) else error
    return InputError(f"{at}: {path}: {reason}; {remark}")
