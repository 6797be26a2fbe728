"""Records whose turn in the results has not come, kept where a killed run leaves them behind."""

from collections.abc import Sequence
from io import FileIO
from pathlib import Path

from jevexp.core.record import Record
from jevexp.store.records import lines
from jevexp.untrusted.writing import create, remove, sync_directory, write_durably


class EarlyRecords:
    """A file beside the results, made by the first record that comes before its turn.

    Requests that are under way at once are answered in any order, and the results are in the
    dataset's order. Each record in this file is written into the results as well once the ones
    before it are there; then the file goes. Only a process that is killed leaves it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: FileIO | None = None

    def append(self, records: Sequence[Record]) -> None:
        """Append records and force them to disk."""
        if self._file is None:
            self._file = create(self._path)
            sync_directory(self._path.parent)
        write_durably(self._file, lines(records))

    def drop(self) -> None:
        """Remove the file; harmless where there is none."""
        if self._file is not None:
            self.close()
            remove(self._path)
            sync_directory(self._path.parent)

    def close(self) -> None:
        """Leave the file as it is."""
        if self._file is not None:
            self._file.close()
            self._file = None
