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
from jevexp.settings import MlflowTracking
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.store.checksums import CHECKSUMS
from jevexp.store.directory import LEDGER, LOG, MANIFEST, RESULTS, SUMMARY
from jevexp.tracking import RunReport, WriteFiles
from jevexp.tracking.mlflow.labels import PATH, metrics, note, params, tags
from jevexp.untrusted.addresses import redacted
from jevexp.untrusted.files import KINDS, opened

FILES = (MANIFEST, SUMMARY, RESULTS, LEDGER, CHECKSUMS, LOG)
# MLflow keeps at most 36 characters.
DIGEST_LENGTH = 12
# MLflow's word; any other status has FAILED. A manifest that says RUNNING was never finished: the
# process is gone, or still at work.
STATUS = {
    RunStatus.COMPLETE: "FINISHED",
    RunStatus.INTERRUPTED: "KILLED",
    RunStatus.RUNNING: "KILLED",
}


@dataclass(frozen=True, slots=True)
class Trace:
    """One answered task.

    Attributes:
        inputs: what was asked, without the right answer; MLflow's evaluation view pairs by it.
        outputs: the prediction and the distribution, or what went wrong.
        ok: whether a valid answer came back.
        start_ns: when it was asked, in nanoseconds since the epoch; `end_ns`: when it was answered.
        expected: the right answer; None where none is known.
    """

    task_id: str
    family: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    ok: bool
    start_ns: int
    end_ns: int
    expected: str | None
    assessments: dict[str, bool | float | str]

    def digest(self, run_id: str) -> str:
        """64 hexadecimal digits that are always the same for this task of this run."""
        return hashlib.sha256(f"{run_id} {self.task_id}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Content:
    """One run for MLflow; times are in milliseconds since the epoch, paths are absolute.

    `dataset` has MLflow's fields of an input of the run, `files` are logged as they are, `raw` is
    the folder with the raw evidence, or None to leave it out. `note`, `report` and `traces` are
    computed only when they are needed.
    """

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
    dataset: dict[str, str]
    config: dict[str, Any]
    table: dict[str, Any]
    files: Sequence[str]
    raw: str | None
    report: WriteFiles | None
    traces: Callable[[], Iterator[Trace]] | None
    evidence_sha256: str


def read(
    directory: RunDirectory,
    tasks: Sequence[Task] | None,
    settings: MlflowTracking,
    report: RunReport,
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
    path, raw = directory.path.absolute(), directory.raw.absolute()
    with_traces = settings.traces and tasks is not None
    start_ms = _milliseconds(manifest.started)
    if manifest.finished is not None:
        end_ms = _milliseconds(manifest.finished)
    else:
        # It never said so: when it was last heard of.
        end_ms = max([start_ms, *(int(record.ts * 1000) for record in directory.records())])
    return Content(
        name=manifest.title,
        directory=manifest.run,
        sweep=manifest.sweep,
        status=STATUS.get(manifest.status, "FAILED"),
        start_ms=start_ms,
        end_ms=end_ms,
        params=params(manifest.config.resolved),
        metrics=metrics(manifest, summary),
        tags=tags(manifest) | {PATH: str(directory.path.resolve())},
        note=lambda: note(directory, manifest, summary, report.intervals()),
        dataset=dataset_input(manifest),
        config=_redacted(manifest.config.resolved),
        table=per_task(directory.records(), tasks),
        files=[str(path / name) for name in FILES if (path / name).is_file()],
        raw=str(raw) if settings.raw_evidence and raw.is_dir() else None,
        report=report.write if settings.report else None,
        traces=(lambda: traces(directory.records(), tasks or ())) if with_traces else None,
        evidence_sha256=evidence_sha256(directory),
    )


def _redacted(value: Any) -> Any:
    """The configuration without passwords in addresses; ours has none, an old one may."""
    if isinstance(value, dict):
        return {name: _redacted(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_redacted(part) for part in value]
    return redacted(value) if isinstance(value, str) else value


def dataset_input(manifest: Manifest) -> dict[str, str]:
    """The tasks of a run as MLflow shows them: name, pin, and the start of their hash."""
    dataset = manifest.dataset
    commit = dataset.pin.commit
    return {
        "name": f"{dataset.name}@{commit[:7]}" if commit else dataset.name,
        "digest": dataset.dataset_hash[:DIGEST_LENGTH],
        "source_type": dataset.pin.source or "unknown",
        "source": dumps(dataset.pin.model_dump(mode="json") | {"files": dataset.files}),
        "profile": dumps({"num_rows": dataset.n_tasks}),
    }


def _milliseconds(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * 1000)


def evidence_sha256(directory: RunDirectory) -> str:
    """Hash of the checksums, which cover every file; before they exist, of the manifest.

    Raises OSError: there is neither, or it cannot be read.
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


# MLflow pairs rows by the first column, and compares the second until somebody chooses another.
COLUMNS = (
    "task_id",
    "outcome",
    "predicted",
    "expected",
    "p_expected",
    "p_predicted",
    "family",
    "latency_s",
    "error",
)


def per_task(records: Iterable[Record], tasks: Sequence[Task] | None) -> dict[str, Any]:
    """The table as MLflow reads it: `columns`, and `data` with one list a row.

    With `tasks` there is a row for every planned task, in their order. Without them there is a row
    for every record, and the right answer is known only where the model gave it. Probabilities and
    seconds are rounded to four digits; results.jsonl has them all.
    """
    if tasks is None:
        rows = (_row(record, None) for record in records)
    else:
        pairs = pair_with_records(tasks, records)
        rows = (_row(record, task) if record else _gap(task) for task, record in pairs)
    data = [[row.get(name) for name in COLUMNS] for row in rows]
    return {"columns": list(COLUMNS), "data": data}


def pair_with_records(
    tasks: Iterable[Task], records: Iterable[Record]
) -> Iterator[tuple[Task, Record | None]]:
    """Each task with its record; while both are in one order, no more than one is held."""
    rest = iter(records)
    waiting: dict[str, Record] = {}
    for task in tasks:
        while task.id not in waiting and (record := next(rest, None)) is not None:
            waiting[record.task_id] = record
        yield task, waiting.pop(task.id, None)


def _row(record: Record, task: Task | None) -> dict[str, Any]:
    expected = task.gold if task else record.predicted if record.correct else None
    return {
        "task_id": record.task_id,
        "family": record.family,
        "outcome": outcome(record, task),
        "expected": expected,
        "predicted": record.predicted,
        "p_expected": _probability(record, expected),
        "p_predicted": _probability(record, record.predicted),
        "latency_s": round(record.latency_s, 4),
        "error": record.error or record.schema_error,
    }


def _gap(task: Task) -> dict[str, Any]:
    named = {"task_id": task.id, "family": task.family, "expected": task.gold}
    return named | {"outcome": "not attempted"}


def outcome(record: Record, task: Task | None) -> str:
    """In one word what came of a task that was attempted."""
    if not record.ok:
        return "failed"
    if not record.valid:
        return "invalid"
    if record.correct is None or (task and not task.scorable):
        return "unscored"
    return "correct" if record.correct else "wrong"


def _probability(record: Record, label: str | None) -> float | None:
    p = (record.probs or {}).get(label or "")
    return None if p is None else round(p, 4)


def traces(records: Iterable[Record], tasks: Iterable[Task]) -> Iterator[Trace]:
    """The traces of a run's records, in the order of the tasks."""
    for task, record in pair_with_records(tasks, records):
        if record is None:
            continue
        ok = record.ok and record.valid
        error = record.error or record.schema_error
        assessments: dict[str, bool | float | str] = {"outcome": outcome(record, task)}
        if record.correct is not None and task.scorable:
            assessments["correct"] = record.correct
        if (p_expected := _probability(record, task.gold)) is not None:
            assessments["p_expected"] = p_expected
        # A record is stamped when its answer is there.
        end_ns = round(record.ts * 1e9)
        yield Trace(
            task_id=task.id,
            family=task.family,
            # The id comes first: MLflow pairs by the start of what it shows, and states are long.
            inputs={
                "task_id": task.id,
                "question": task.question.model_dump(mode="json", exclude_unset=True),
                "state": task.state,
            },
            outputs={"predicted": record.predicted, "probs": record.probs}
            if ok
            else {"error": error, "probs": record.probs_as_returned},
            ok=ok,
            start_ns=end_ns - round(record.latency_s * 1e9),
            end_ns=end_ns,
            expected=task.gold,
            assessments=assessments,
        )
