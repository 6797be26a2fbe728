"""Opening a file of weights without waiting for anything that is none."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from jevexp.errors import InputError
from jevexp.untrusted import files


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
