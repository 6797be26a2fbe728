"""The tasks that two runs both answered, lined up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jevexp.analysis.runs import FinishedRun
from jevexp.analysis.statistics.distance import total_variation
from jevexp.domain.record import Record
from jevexp.domain.task import Kind, Task
from jevexp.harness.summary import Scored, brier, ordinal_error


class Pair(NamedTuple):
    """One task, as both sides answered it; `scorable` says whether it counts in scores."""

    task: Task | None
    baseline: Record
    candidate: Record
    scorable: bool

    @property
    def cluster(self) -> str:
        """Its paraphrase group, or itself; the prefix keeps a group and an id of one name apart."""
        group = self.baseline.group
        return f"task {self.baseline.task_id}" if group is None else f"group {group}"

    @property
    def distance(self) -> float | None:
        """Total variation distance between both distributions; None where one is missing."""
        if self.baseline.probs is None or self.candidate.probs is None:
            return None
        return total_variation(self.baseline.probs, self.candidate.probs)


@dataclass(frozen=True, slots=True)
class Differences:
    """Candidate minus baseline, a value a task, and the cluster of each."""

    values: list[float]
    clusters: list[str]


def pair_up(baseline: FinishedRun, candidate: FinishedRun) -> list[Pair]:
    """The tasks that both sides attempted, in the order of their ids."""
    # One hash, so one set of tasks: whichever side has them.
    tasks = baseline.tasks or candidate.tasks or {}
    return [
        Pair(
            tasks.get(task_id),
            baseline.records[task_id],
            candidate.records[task_id],
            baseline.scorable(task_id) and candidate.scorable(task_id),
        )
        for task_id in sorted(baseline.records.keys() & candidate.records.keys())
    ]


def differences(
    pairs: Sequence[Pair], measure: Callable[[Task | None, Record], float | None]
) -> Differences:
    """The differences of a measure over the scorable pairs where both sides have it."""
    values, clusters = [], []
    for pair in pairs:
        first = measure(pair.task, pair.baseline)
        second = measure(pair.task, pair.candidate)
        if pair.scorable and first is not None and second is not None:
            values.append(second - first)
            clusters.append(pair.cluster)
    return Differences(values, clusters)


def correctness(_: Task | None, record: Record) -> float:
    """1 where the answer is right; a failure is wrong."""
    return float(record.correct is True)


def brier_of(task: Task | None, record: Record) -> float | None:
    """The Brier score of one answer; see the harness's summary."""
    scored = _scored(task, record)
    return None if scored is None else brier(scored)


def level_error_of(task: Task | None, record: Record) -> float | None:
    """The distance of one answer to a score task, in levels; see the harness's summary."""
    scored = _scored(task, record)
    return ordinal_error(scored) if scored and scored.kind is Kind.SCORE else None


def _scored(task: Task | None, record: Record) -> Scored | None:
    if task is None or task.gold is None or record.probs is None:
        return None
    return Scored(task.kind, task.gold, record.probs, record.correct is True)
