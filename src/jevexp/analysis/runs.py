"""Finished runs: read from their directories, checked for comparison, laid out as arrays."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Self

from jevexp.core.record import Record, Summary
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.harness.summary import Scored, summarize
from jevexp.store import Manifest, RunDirectory, RunStatus

if TYPE_CHECKING:
    from numpy import bool_, float64, intp
    from numpy.typing import NDArray

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

    Raises InputError: it is no run, it never asked anything, or its results are not readable or not
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
    planned = find_tasks(manifest)
    tasks = None if planned is None else {task.id: task for task in planned}
    if tasks is not None and (unexpected := sorted(by_id.keys() - tasks.keys())):
        raise InputError(f"{directory.path}: task {unexpected[0]!r} has a record, not in the tasks")
    summary = directory.read_summary()
    if summary is None and planned is not None:
        summary = summarize(planned, read_records(directory))
    return FinishedRun(directory.path, manifest, by_id, tasks, summary)


def read_records(directory: RunDirectory) -> Iterator[Record]:
    """The records of a run, one after the other.

    Raises InputError: they are not there, or one is damaged.
    """
    try:
        yield from directory.records()
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(str(error)) from error


def check_comparable(runs: Sequence[FinishedRun]) -> None:
    """Refuse runs that were not put the same tasks, and a run beside itself.

    Raises InputError: fewer than two runs, one twice or beside its copy, or another dataset or
    number of tasks.
    """
    if len(runs) < 2:
        raise InputError("one run is no comparison; give at least two run directories, or a sweep")
    seen: set[Path] = set()
    originals: dict[tuple[str | None, ...], FinishedRun] = {}
    for run in runs:
        if (place := run.path.resolve()) in seen:
            raise InputError(f"{run.path}: given twice; a run cannot be compared with itself")
        seen.add(place)
        # What a run shares with its copies alone, wherever they are and whatever they are called:
        # many runs are called `0` or `run`, and a fast machine may start two in one millisecond.
        manifest = run.manifest
        identity = (manifest.run, manifest.sweep, manifest.started, manifest.config.sha256)
        original = originals.setdefault(identity, run)
        if original is not run:
            raise InputError(
                f"{run.path}: a copy of {original.path}: both are the run {manifest.run!r} "
                f"that started at {manifest.started}; a run cannot be compared with itself"
            )
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


@dataclass(frozen=True, slots=True)
class Axis:
    """The tasks that any of the runs attempted, in the order of their ids.

    `members` numbers the cluster of each task; `tasks` is empty where no run has its tasks here.
    `unscored` are those that count in no score, as far as that is known without the tasks.
    """

    ids: list[str]
    members: "NDArray[intp]"
    tasks: dict[str, Task]
    unscored: set[str]


@dataclass(frozen=True, slots=True)
class Answers:
    """What one run answered, an entry a task of the axis; NaN where there is nothing.

    `correct` is 1 or 0 for attempted tasks that count in scores; a failure is wrong, also where
    nothing says whether its task has a truth. `confidence` needs a valid distribution as well, and
    `values`, by metric, a truth. `latency` is the seconds of every attempt and `timed` only those
    of valid answers.
    """

    attempted: "NDArray[bool_]"
    correct: "NDArray[float64]"
    confidence: "NDArray[float64]"
    latency: "NDArray[float64]"
    timed: "NDArray[float64]"
    values: "Mapping[str, NDArray[float64]]"


def axis_of(runs: Sequence[FinishedRun]) -> Axis:
    """The axis that all runs share."""
    import numpy as np

    # One hash, so one set of tasks: whichever run has them.
    tasks = next((run.tasks for run in runs if run.tasks is not None), {})
    groups: dict[str, str | None] = {}
    for run in runs:
        for task_id, record in run.records.items():
            groups.setdefault(task_id, record.group)
    ids = sorted(groups)
    # A group and a task of one name are two clusters.
    keys = [(groups[task_id] is not None, groups[task_id] or task_id) for task_id in ids]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    members = np.asarray([numbers[key] for key in keys], dtype=np.intp)
    unscored = {task.id for task in tasks.values() if not task.scorable}
    if not tasks:
        unscored = set[str]().union(*map(_without_truth, runs))
    return Axis(ids, members, tasks, unscored)


def _without_truth(run: FinishedRun) -> set[str]:
    """The tasks of a run that have no truth, as far as its records and its summary tell."""
    # A valid answer to such a task has no judgement. A failed attempt is recorded as wrong also
    # there; the summary, which knew the tasks, shows it where it counts none of a family's
    # failures.
    unscored = set()
    judged = defaultdict[str, list[Answer]](list)
    for answer in run.records.values():
        if answer.correct is not None:
            judged[answer.family].append(answer)
        elif answer.valid:
            unscored.add(answer.task_id)
    for name, part in run.summary.per_family.items() if run.summary else ():
        valid = [answer.correct for answer in judged[name] if answer.valid]
        if (len(valid), valid.count(True)) == (part.n_scorable, part.n_correct):
            unscored.update(answer.task_id for answer in judged[name] if not answer.valid)
    return unscored


def answers_of(
    run: FinishedRun, axis: Axis, values: Mapping[str, Callable[[Scored], float]]
) -> Answers:
    """The run's answers along the axis; `values` says by metric what each task's value is."""
    import numpy as np

    size = len(axis.ids)
    attempted = np.zeros(size, dtype=bool)
    correct, confidence, latency, timed = np.full((4, size), np.nan)
    by_metric = {name: np.full(size, np.nan) for name in values}
    for place, task_id in enumerate(axis.ids):
        if (answer := run.records.get(task_id)) is None:
            continue
        attempted[place] = True
        latency[place] = answer.latency_s
        if answer.valid:
            timed[place] = answer.latency_s
        task = axis.tasks.get(task_id)
        if task_id in axis.unscored or (task is None and answer.correct is None):
            continue
        right = answer.correct is True
        correct[place] = right
        if answer.probs is None:
            continue
        confidence[place] = max(answer.probs.values())
        if task is not None and task.gold is not None:
            scored = Scored(task.kind, task.gold, answer.probs, right)
            for name, value_of in values.items():
                by_metric[name][place] = value_of(scored)
    return Answers(attempted, correct, confidence, latency, timed, by_metric)
