"""The run that is to be resumed, as its directory tells it, and whether it can be."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jevexp.core.json import loads
from jevexp.core.record import Record
from jevexp.errors import InputError
from jevexp.ledger import FileLedger, LedgerError
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.store.adoption import AdoptedAnswer
from jevexp.store.checksums import CHECKSUMS
from jevexp.store.directory import LEDGER, RESULTS
from jevexp.store.finding import earlier_run
from jevexp.store.manifest import Resumed
from jevexp.untrusted.files import opened, whole_lines

_UPSTREAM = Path("upstream") / RESULTS
# Far more than anybody starts in vain.
_MOST_BEFORE = 100


@dataclass(frozen=True, slots=True)
class Earlier:
    """A run that ended early and that nobody writes any more."""

    directory: RunDirectory
    manifest: Manifest

    @property
    def path(self) -> Path:
        """Its directory."""
        return self.directory.path

    def answers(self) -> Iterator[tuple[AdoptedAnswer, bool]]:
        """Every answer in it, each once, and whether its record had not been written yet.

        Raises:
            InputError: a file is damaged.
        """
        seen: set[str] = set()
        for record, recovered in self._records():
            if record.ok and record.task_id not in seen:
                seen.add(record.task_id)
                yield AdoptedAnswer(record, self.directory.raw_file(record.task_id)), recovered
        settled = self._settled()
        for held in self.directory.held():
            record = held.record
            if not record.ok or record.task_id in seen or record.charged_usd > record.reserved_usd:
                continue
            if record.task_id not in settled:
                # What the ledger says: an open reservation is charged in full.
                record = record.model_copy(update={"charged_usd": record.reserved_usd})
            yield AdoptedAnswer(record, self.directory.raw_file(record.task_id), held.raw), True

    def took_over(self, adopted: Iterable[str]) -> bool:
        """Whether all answers are here that it was to take over.

        Raises:
            InputError: a file is damaged.
        """
        return set(adopted) <= {record.task_id for record, _ in self._records()}

    def charged_usd(self) -> float:
        """What this run and those before it were charged in ledgers of their own, in US dollars.

        Raises:
            InputError: the ledger is damaged.
        """
        if self.manifest.config.resolved["caps"]["ledger"] is not None:
            return 0.0
        before = self.manifest.resumed.charged_usd if self.manifest.resumed else 0.0
        return before + charged_in(self.path / LEDGER)

    def _records(self) -> Iterator[tuple[Record, bool]]:
        try:
            for record in self.directory.records():
                yield record, False
            for record in self.directory.early_records():
                yield record, True
            for record in self._not_taken_over():
                yield record, True
        except FileNotFoundError:
            # Killed before it had its results.
            return
        except OSError as error:
            raise InputError(f"resume: {error.filename}: {error.strerror}") from error
        except ValueError as error:
            raise InputError(f"resume: {error}") from error

    def _not_taken_over(self) -> Iterator[Record]:
        """Records that the pinned harness had written itself."""
        path = self.path / _UPSTREAM
        if not path.exists():
            return
        with opened(path, follow_links=False) as file:
            for number, line in whole_lines(file):
                try:
                    fields = loads(line)
                    if not isinstance(fields["runtime"], dict):
                        fields["runtime"] = None
                    yield Record.model_validate(fields)
                except (ValueError, KeyError, TypeError) as error:
                    raise ValueError(f"{path}:{number}: not a record") from error

    def _settled(self) -> set[str]:
        """The tasks of which this run's own ledger rows say what they cost."""
        return {row["meta"]["task_id"] for row in self._rows() if row["event"] == "settle"}

    def _rows(self) -> Iterator[dict[str, Any]]:
        path = self.path / LEDGER
        if not path.exists():
            return
        with opened(path, follow_links=False) as file:
            for number, line in whole_lines(file):
                try:
                    row = loads(line)
                    row["meta"]["task_id"] if row["event"] == "settle" else row["event"]
                except (ValueError, KeyError, TypeError) as error:
                    raise InputError(f"resume: {path}:{number}: not a ledger row") from error
                yield row


def charged_in(ledger: Path) -> float:
    """What a ledger was charged in total, in US dollars; nothing where there is none.

    Raises:
        InputError: the ledger is damaged.
    """
    if not ledger.exists():
        return 0.0
    try:
        with FileLedger(ledger, 0.0, read_only=True) as opened_ledger:
            return opened_ledger.charged_usd
    except LedgerError as error:
        raise InputError(f"resume: {error}") from error


def read_earlier(path: Path, *, ended: bool = False) -> Earlier:
    """Read the run that is to be resumed.

    One that was refused, or killed while it took over an earlier run's answers, has asked nothing
    itself: then it is that earlier run which is read.

    Args:
        path: its directory.
        ended: whether a complete run is read as well.

    Raises:
        InputError: it is no run, it is complete, it was refused, it is still being written, or the
            runs before it are not there, or too many.
    """
    if not path.is_dir():
        raise InputError(f"resume: {path}: no such folder; give a run's directory, or a sweep's")
    given = path
    for _ in range(_MOST_BEFORE):
        directory = RunDirectory(path)
        manifest = directory.read_manifest()
        if directory.in_use:
            raise InputError(
                f"resume: {path}: a process is still writing it; wait, or stop that first"
            )
        if manifest.status is RunStatus.REFUSED:
            if manifest.resumed is None:
                raise InputError(
                    f"resume: {path}: was refused and asked nothing; run it again instead"
                )
        else:
            if not ended and manifest.status is RunStatus.COMPLETE and (path / CHECKSUMS).exists():
                raise InputError(f"resume: {path}: is complete; there is nothing left to ask")
            earlier = Earlier(directory, manifest)
            if manifest.resumed is None or earlier.took_over(manifest.resumed.adopted):
                return earlier
        path = _before(path, manifest.resumed)
    raise InputError(
        f"resume: {given}: more than {_MOST_BEFORE} runs before it that each asked nothing; name "
        "the one that holds the answers"
    )


def _before(path: Path, resumed: Resumed) -> Path:
    """The run that was to be gone on with.

    Raises:
        InputError: it is not here, or is another one now.
    """
    before = earlier_run(path, resumed)
    if before is None:
        raise InputError(
            f"resume: {path}: asked nothing itself, and the run that it goes on with is not at "
            f"{resumed.path} as it was; put that back there, or beside this one"
        )
    return before
