"""All that is logged of a run, read from its directory. Nothing here knows MLflow's interface."""

import hashlib
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from jevexp.core.json import dumps
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.settings import Tracking
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.store.checksums import CHECKSUMS
from jevexp.store.directory import LEDGER, LOG, MANIFEST, RESULTS, SUMMARY
from jevexp.tracking.labels import PATH, metrics, params, tags
from jevexp.tracking.note import note
from jevexp.tracking.protocol import RunReport, WriteFiles
from jevexp.tracking.traces import Trace, per_task, traces
from jevexp.untrusted.addresses import redacted
from jevexp.untrusted.files import KINDS, opened

FILES = (MANIFEST, SUMMARY, RESULTS, LEDGER, CHECKSUMS, LOG)
# MLflow keeps at most 36 characters.
DIGEST_LENGTH = 12
STATUS = {
    RunStatus.COMPLETE: "FINISHED",
    RunStatus.INCOMPLETE: "FAILED",
    RunStatus.REFUSED: "FAILED",
    RunStatus.CRASHED: "FAILED",
    RunStatus.INTERRUPTED: "KILLED",
    # The manifest was never finished: the process is gone, or still at work.
    RunStatus.RUNNING: "KILLED",
}


@dataclass(frozen=True, slots=True)
class DatasetInput:
    """The tasks as an input of the run; `source` and `profile` are JSON."""

    name: str
    digest: str
    source_type: str
    source: str
    profile: str


@dataclass(frozen=True, slots=True)
class Content:
    """One run for MLflow. Times are in milliseconds since the epoch."""

    name: str
    directory: str
    sweep: str | None
    status: str
    start_ms: int
    end_ms: int
    params: dict[str, str]
    metrics: dict[str, float]
    tags: dict[str, str]
    note: Callable[[], str]
    dataset: DatasetInput
    config: dict[str, Any]
    table: dict[str, Any]
    files: tuple[Path, ...]
    raw: Path | None
    report: WriteFiles | None
    traces: Callable[[], Iterator[Trace]] | None
    evidence_sha256: str


def read(
    directory: RunDirectory, tasks: Sequence[Task] | None, settings: Tracking, report: RunReport
) -> Content:
    """Read a run directory; the run may have ended in any way.

    Without the tasks there are no traces: nobody knows what was asked.

    Raises:
        InputError: there is no manifest.
        ValueError: a file is damaged.
    """
    _refuse_links(directory.path)
    manifest = directory.read_manifest()
    summary = directory.read_summary()
    return Content(
        name=manifest.title,
        directory=manifest.run,
        sweep=manifest.sweep,
        status=STATUS[manifest.status],
        start_ms=_milliseconds(manifest.started),
        end_ms=_end(manifest, directory.records()),
        params=params(manifest.config.resolved),
        metrics=metrics(manifest, summary),
        tags=tags(manifest) | {PATH: str(directory.path.resolve())},
        note=lambda: note(directory, manifest, summary, report.intervals()),
        dataset=dataset_input(manifest),
        config=_redacted(manifest.config.resolved),
        table=per_task(directory.records(), tasks),
        files=tuple(path for name in FILES if (path := directory.path / name).is_file()),
        raw=directory.raw if settings.raw_evidence and directory.raw.is_dir() else None,
        report=report.report,
        traces=_traces(directory, tasks) if settings.traces and tasks is not None else None,
        evidence_sha256=evidence_sha256(directory),
    )


def _redacted(value: Any) -> Any:
    """The configuration without passwords in addresses; ours has none, an old one may."""
    if isinstance(value, dict):
        return {name: _redacted(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_redacted(part) for part in value]
    return redacted(value) if isinstance(value, str) else value


def _traces(directory: RunDirectory, tasks: Sequence[Task]) -> Callable[[], Iterator[Trace]]:
    return lambda: traces(directory.records(), tasks)


def dataset_input(manifest: Manifest) -> DatasetInput:
    """The tasks of a run as MLflow shows them: name, pin, and the start of their hash."""
    dataset = manifest.dataset
    commit = dataset.pin.commit
    return DatasetInput(
        name=f"{dataset.name}@{commit[:7]}" if commit else dataset.name,
        digest=dataset.dataset_hash[:DIGEST_LENGTH],
        source_type=dataset.pin.source or "unknown",
        source=dumps(dataset.pin.model_dump(mode="json") | {"files": dataset.files}),
        profile=dumps({"num_rows": dataset.n_tasks}),
    )


def _end(manifest: Manifest, records: Iterable[Record]) -> int:
    """When the run ended; for one that never said so, when it was last heard of."""
    if manifest.finished is not None:
        return _milliseconds(manifest.finished)
    return max([_milliseconds(manifest.started), *(int(one.ts * 1000) for one in records)])


def _milliseconds(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * 1000)


def evidence_sha256(directory: RunDirectory) -> str:
    """Hash of the checksums, which cover every file; before they exist, of the manifest.

    Raises:
        OSError: there is neither, or it cannot be read.
    """
    sealed = directory.path / CHECKSUMS
    path = sealed if sealed.is_file() else directory.path / MANIFEST
    with opened(path, follow_links=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refuse_links(directory: Path) -> None:
    """What a link or a second name leads to is no evidence of the run, and must be sent nowhere."""
    for path in directory.rglob("*"):
        status = path.lstat()
        if stat.S_ISDIR(status.st_mode):
            continue
        name = path.relative_to(directory)
        if not stat.S_ISREG(status.st_mode):
            kind = KINDS.get(stat.S_IFMT(status.st_mode), "no file")
            raise ValueError(f"{name} is {kind}; a run has none")
        if status.st_nlink > 1:
            raise ValueError(f"{name} has a second name (a hard link); a run's files have one")
