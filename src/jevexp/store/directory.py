"""One run's directory: fresh, append-only while it runs, complete when it is closed."""

import errno
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel

from jevexp.core.json import dumps, loads
from jevexp.core.record import Record, Summary
from jevexp.errors import InputError
from jevexp.store.checksums import CHECKSUMS, checksum_lines
from jevexp.store.manifest import Manifest
from jevexp.store.records import (
    AdoptedRecords,
    Adoption,
    Held,
    lines,
    raw_name,
    read_records,
    reason,
)
from jevexp.untrusted.files import RefusedPath, read_document
from jevexp.untrusted.locks import WriterLock, is_held
from jevexp.untrusted.writing import (
    Folder,
    create,
    make_folders,
    remove,
    remove_folder,
    replace,
    sync_directory,
    write_all,
    write_durably,
)

RESULTS = "results.jsonl"
EARLY = "early.jsonl"
PENDING = "pending"
RAW = "raw"
LEDGER = "ledger.jsonl"
MANIFEST = "manifest.json"
SUMMARY = "summary.json"
LOG = "run.log"
# What the launcher makes before the run gets its directory.
_LAUNCHER_FILES = frozenset({".hydra"})


class RunDirectory:
    """The directory of one run, for writing by its runner and reading by everybody else.

    Requests that are under way at once are answered in any order, and the results are in the
    dataset's order. A record that comes before its turn waits in `early.jsonl` beside the results,
    and that file goes once all are in their places. An answer waits in a file of its own between
    its arrival and its record. Only a process that is killed leaves either behind.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._folder: Folder | None = None
        self._below: dict[str, Folder] = {}
        self._results: FileIO | None = None
        self._early: FileIO | None = None
        self._adopted = AdoptedRecords((), {})
        self._lock = WriterLock()

    @classmethod
    def create(cls, path: Path) -> Self:
        """Claim a fresh directory and open its results for writing.

        A directory that holds only what the launcher writes is fresh.

        Raises InputError: something else is there already; nothing was touched.
        """
        directory, way_out = cls(path), "every run needs a fresh directory"
        try:
            make_folders(path)
            if names := sorted({entry.name for entry in path.iterdir()} - _LAUNCHER_FILES):
                raise InputError(f"{path}: holds {names[0]!r} already; {way_out}")
            directory._claim()
        except NotADirectoryError as error:
            raise InputError(f"{path}: is a file; {way_out}") from error
        except FileExistsError as error:
            raise InputError(f"{path}: another run has just taken it; {way_out}") from error
        except RefusedPath as error:
            raise InputError(f"{error.filename}: {error.strerror}") from error
        return directory

    def _claim(self) -> None:
        folder = Folder.open(self.path)
        try:
            folder.make_private()
            # Exclusive: of two runs that chose one directory, exactly one goes on.
            folder.make(RAW)
            self._results = folder.create(RESULTS)
            folder.make(PENDING)
            self._lock.hold(self._results)
            folder.sync()
        except BaseException:
            folder.close()
            raise
        # Stays open: where no handle is left, the last manifest needs only the one of its file.
        self._folder = folder

    @property
    def in_use(self) -> bool:
        """Whether a process on this machine that lives now still writes the directory."""
        return is_held(self.path / RESULTS)

    @property
    def raw(self) -> Path:
        """The folder of raw evidence, one file a task."""
        return self.path / RAW

    def raw_file(self, task_id: str) -> Path:
        """Where a task's raw evidence is."""
        return self.raw / raw_name(task_id)

    def hold(self, record: Record, raw: str) -> None:
        """Keep an answer that has neither raw evidence nor a record yet; `append` ends that.

        It is not forced to disk: it outlives a process that is killed, which is what it is for, and
        not a machine that loses its power.
        """
        pending, name = self._open_below(PENDING), raw_name(record.task_id)
        try:
            file = pending.create(name)
        except FileExistsError:
            # A task that is asked again has another answer.
            pending.remove(name)
            file = pending.create(name)
        with file:
            write_all(file, dumps({"record": record.line(), "raw": raw}).encode())

    def held(self) -> Iterator[Held]:
        """The answers that a killed process had received and not recorded.

        A file that was cut off in the middle is none: its answer never had any evidence. Neither is
        one whose record belongs to other evidence.
        """
        for path in sorted((self.path / PENDING).glob("*.json")):
            try:
                fields = loads(read_document(path, follow_links=False))
                held = Held(Record.model_validate(fields["record"]), str(fields["raw"]))
            except (ValueError, KeyError, TypeError):
                continue
            if hashlib.sha256(held.raw.encode()).hexdigest() == held.record.raw_sha256:
                yield held

    def write_raw(self, task_id: str, text: str) -> str:
        """Keep a task's request and response, and give back the SHA-256 of what was written.

        Raises FileExistsError: this task has raw evidence already.
        """
        data = text.encode()
        raw = self._open_below(RAW)
        with raw.create(raw_name(task_id)) as file:
            write_durably(file, data)
        raw.sync()
        return hashlib.sha256(data).hexdigest()

    def append(self, record: Record) -> None:
        """Append a record and force it to disk."""
        self.append_all([record])

    def append_all(self, records: Sequence[Record]) -> None:
        """Append records and force them to disk together."""
        batch: list[Record] = []
        for record in records:
            batch += [*self._adopted.until({record.task_id}), record]
        self._write(batch)
        self._forget_held(records)

    def adopt(self, adoption: Adoption, order: Sequence[str]) -> None:
        """Take over an earlier run's answers: copies of the raw evidence, and the records.

        Records wait beside the results until these come to their places; `order` are the ids of
        all planned tasks, in the dataset's order.

        Raises InputError: raw evidence is not that of its record.
        """
        if not adoption.answers:
            return
        for answer in adoption.answers:
            # A copy: through a hard link, a change in one run would be one in the other.
            with self._open_below(RAW).create(raw_name(answer.record.task_id)) as file:
                write_all(file, answer.raw_bytes())
        # One wait for all copies, instead of one for each.
        os.sync()
        records = {answer.record.task_id: answer.record for answer in adoption.answers}
        self._write_early(list(records.values()))
        self._adopted = AdoptedRecords(order, records)
        self._write(self._adopted.until(set(order) - records.keys()))

    def place_adopted(self) -> None:
        """Put the adopted records whose place was not reached into the results."""
        self._write(self._adopted.until(()))
        self.drop_early()

    def append_early(self, records: Sequence[Record]) -> None:
        """Keep records that wait for the ones before them; `append_all` gets them later as well."""
        self._write_early(records)
        self._forget_held(records)

    def drop_early(self) -> None:
        """Forget the early records, which are all in the results by now."""
        if self._early is not None and not self._adopted.waiting:
            self._close_early()
            remove(self.path / EARLY)
            sync_directory(self.path)

    def records(self) -> Iterator[Record]:
        """The records in the order they were made; raises as `read_records` does."""
        return read_records(self.path / RESULTS)

    def early_records(self) -> Iterator[Record]:
        """The records that a killed run had kept before their turn and not yet put into order."""
        path = self.path / EARLY
        if path.exists():
            placed = {record.task_id for record in self.records()}
            yield from (early for early in read_records(path) if early.task_id not in placed)

    def write_manifest(self, manifest: Manifest) -> None:
        """Write the manifest, replacing an earlier one in one step."""
        self._write_json(MANIFEST, manifest.model_dump(mode="json"))

    def read_manifest(self) -> Manifest:
        """Read the manifest; raises InputError: there is none, or it is not a manifest."""
        path = self.path / MANIFEST
        try:
            return _read(path, Manifest, "manifest")
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; is this a run directory?") from error

    def write_summary(self, summary: Summary) -> None:
        """Write the summary, replacing an earlier one in one step."""
        self._write_json(SUMMARY, summary.plain())

    def read_summary(self) -> Summary | None:
        """Read the summary; None where a run ended without one.

        Raises InputError: it is not a summary.
        """
        path = self.path / SUMMARY
        try:
            return _read(path, Summary, "summary")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error

    def close(self) -> None:
        """Close the results; nothing can be appended any more."""
        self._close_early()
        if self._results is not None:
            self._results.close()
            self._results = None
            # It stays where an answer is still held.
            with suppress(OSError):
                remove_folder(self.path / PENDING)

    def release(self) -> None:
        """Close what is open, and let others see that nobody writes here any more."""
        self.close()
        self._lock.release()
        if self._folder is not None:
            self._folder.close()
            self._folder = None
        while self._below:
            self._below.popitem()[1].close()

    def seal(self) -> None:
        """Write the checksums of every file, in the format of `sha256sum -c`. Comes last.

        Raises FileExistsError: the directory is sealed already.
        """
        if (self.path / CHECKSUMS).exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self.path / CHECKSUMS)
        self._replace(CHECKSUMS, checksum_lines(self.path))

    def _write(self, records: Sequence[Record]) -> None:
        if self._results is None:
            raise ValueError(f"{self.path}: the results are closed")
        write_durably(self._results, lines(records))

    def _write_early(self, records: Sequence[Record]) -> None:
        if self._early is None:
            self._early = create(self.path / EARLY)
            sync_directory(self.path)
        write_durably(self._early, lines(records))

    def _close_early(self) -> None:
        if self._early is not None:
            self._early.close()
            self._early = None

    def _open_below(self, name: str) -> Folder:
        # Kept open: every answer is written into it.
        if name not in self._below:
            self._below[name] = Folder.open(self.path / name)
        return self._below[name]

    def _forget_held(self, records: Sequence[Record]) -> None:
        for record in records:
            with suppress(FileNotFoundError):
                self._open_below(PENDING).remove(raw_name(record.task_id))

    def _write_json(self, name: str, value: dict[str, Any]) -> None:
        self._replace(name, dumps(value, indent=2).encode() + b"\n")

    def _replace(self, name: str, data: bytes) -> None:
        if self._folder is None:
            replace(self.path / name, data)
        else:
            self._folder.replace(name, data)


_Model = TypeVar("_Model", bound=BaseModel)


def _read(path: Path, model: type[_Model], kind: str) -> _Model:
    try:
        return model.model_validate(loads(read_document(path, follow_links=False)))
    except ValueError as error:
        raise InputError(f"{path}: not a {kind}: {reason(error)}") from error
