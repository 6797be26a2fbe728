"""Finished runs, read from their directories, and whether they can be held against each other."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Self

from jevexp.core.record import Record
from jevexp.core.summary import Summary
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.harness import summarize
from jevexp.store import Manifest, RunDirectory, RunStatus

FindTasks = Callable[[Manifest], Sequence[Task] | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """The part of a record that comparisons use; see `Record`.

    Of a hundred thousand records the whole ones would take most of the memory.
    """

    task_id: str
    family: str
    group: str | None
    ok: bool
    valid: bool
    correct: bool | None
    predicted: str | None
    probs: dict[str, float] | None
    probs_source: str
    latency_s: float
    cost_usd: float | None

    @classmethod
    def of(cls, record: Record) -> Self:
        """The answer in a record."""
        return cls(
            task_id=record.task_id,
            family=intern(record.family),
            group=record.group,
            ok=record.ok,
            valid=record.valid,
            correct=record.correct,
            predicted=record.predicted and intern(record.predicted),
            probs=record.probs and {intern(label): p for label, p in record.probs.items()},
            probs_source=intern(record.probs_source),
            latency_s=record.latency_s,
            cost_usd=record.cost_usd,
        )


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """One run as its directory tells it; `tasks` is None where they cannot be had here.

    A run that left no summary has one computed where its tasks are here.
    """

    path: Path
    manifest: Manifest
    records: dict[str, Answer]
    tasks: dict[str, Task] | None
    summary: Summary | None

    @property
    def readouts(self) -> list[str]:
        """Where the probabilities of its answers come from."""
        return sorted({record.probs_source for record in self.records.values() if record.valid})


def read_run(directory: RunDirectory, find_tasks: FindTasks) -> FinishedRun:
    """Read a run.

    Raises:
        InputError: it is no run, it never asked anything, or its results are not readable or not
            those of its tasks.
    """
    manifest = directory.read_manifest()
    if manifest.status is RunStatus.REFUSED:
        raise InputError(f"{directory.path}: was refused and holds no answers; leave it out")
    by_id: dict[str, Answer] = {}
    for record in read_records(directory):
        if record.task_id in by_id:
            raise InputError(f"{directory.path}: task {record.task_id!r} has two records")
        by_id[record.task_id] = Answer.of(record)
    found = find_tasks(manifest)
    tasks = None if found is None else {task.id: task for task in found}
    if tasks is not None and (strangers := sorted(by_id.keys() - tasks.keys())):
        raise InputError(f"{directory.path}: task {strangers[0]!r} has a record, not in the tasks")
    summary = directory.read_summary()
    if summary is None and found is not None:
        summary = summarize(found, read_records(directory))
    return FinishedRun(directory.path, manifest, by_id, tasks, summary)


def read_records(directory: RunDirectory) -> Iterator[Record]:
    """The records of a run, one after the other.

    Raises:
        InputError: they are not there, or one is damaged.
    """
    try:
        yield from directory.records()
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(str(error)) from error


def check_comparable(runs: Sequence[FinishedRun]) -> None:
    """Refuse runs that were not put the same tasks.

    Raises:
        InputError: fewer than two runs, one twice, or another dataset or number of tasks.
    """
    if len(runs) < 2:
        raise InputError("one run is no comparison; give at least two run directories, or a sweep")
    seen: set[Path] = set()
    for run in runs:
        if (place := run.path.resolve()) in seen:
            raise InputError(f"{run.path}: given twice; a run cannot be compared with itself")
        seen.add(place)
    first = runs[0].manifest
    for run in runs[1:]:
        other = run.manifest
        if other.dataset.dataset_hash != first.dataset.dataset_hash:
            raise InputError(
                f"{run.path}: other tasks than {runs[0].path}: dataset_hash is "
                f"{other.dataset.dataset_hash[:12]} ({other.dataset.name}), not "
                f"{first.dataset.dataset_hash[:12]} ({first.dataset.name})"
            )
        # The same tasks in the same order, up to the limit: one set where the numbers agree.
        if other.counts.requested != first.counts.requested:
            raise InputError(
                f"{run.path}: other tasks than {runs[0].path}: {other.counts.requested} of them "
                f"requested, not {first.counts.requested}; compare runs with the same caps.limit"
            )
