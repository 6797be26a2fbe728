"""The answers of all runs as arrays over one list of tasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jevexp.analysis.runs import Answer, FinishedRun
from jevexp.core.task import Kind, Task
from jevexp.harness.groups import Scored, brier, ordinal_error

if TYPE_CHECKING:
    from numpy import bool_, float64, intp
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Axis:
    """The tasks that any of the runs attempted, in the order of their ids.

    `members` numbers the cluster of each task; `tasks` is None where no run has its tasks here.
    """

    ids: list[str]
    members: "NDArray[intp]"
    tasks: dict[str, Task] | None


@dataclass(frozen=True, slots=True)
class Answers:
    """What one run answered, an entry a task of the axis; NaN where there is nothing.

    `correct` is 1 or 0 for attempted tasks that count in scores (a failure is wrong), `brier`,
    `level_error` and `confidence` need a valid distribution as well, `latency` is the seconds of
    every attempt and `timed` only those of valid answers.
    """

    attempted: "NDArray[bool_]"
    correct: "NDArray[float64]"
    brier: "NDArray[float64]"
    level_error: "NDArray[float64]"
    confidence: "NDArray[float64]"
    latency: "NDArray[float64]"
    timed: "NDArray[float64]"


def axis_of(runs: Sequence[FinishedRun]) -> Axis:
    """The axis that all runs share."""
    import numpy as np

    # One hash, so one set of tasks: whichever run has them.
    tasks = next((run.tasks for run in runs if run.tasks is not None), None)
    groups: dict[str, str | None] = {}
    for run in runs:
        for task_id, record in run.records.items():
            groups.setdefault(task_id, record.group)
    ids = sorted(groups)
    numbers: dict[tuple[bool, str], int] = {}
    members = np.empty(len(ids), dtype=np.intp)
    for place, task_id in enumerate(ids):
        group = groups[task_id]
        # A group and a task of one name are two clusters.
        key = (False, task_id) if group is None else (True, group)
        members[place] = numbers.setdefault(key, len(numbers))
    return Axis(ids, members, tasks)


def answers_of(run: FinishedRun, axis: Axis) -> Answers:
    """The run's answers along the axis."""
    import numpy as np

    columns = np.full((6, len(axis.ids)), np.nan)
    attempted = np.zeros(len(axis.ids), dtype=bool)
    for place, task_id in enumerate(axis.ids):
        if (record := run.records.get(task_id)) is not None:
            attempted[place] = True
            task = None if axis.tasks is None else axis.tasks.get(task_id)
            columns[:, place] = _measures(task, record)
    return Answers(attempted, *columns)


def _measures(task: Task | None, record: Answer) -> tuple[float, ...]:
    nan = float("nan")
    timed = record.latency_s if record.valid else nan
    # Without the tasks: whatever was judged.
    scorable = task.scorable if task else record.correct is not None
    if not scorable:
        return (nan, nan, nan, nan, record.latency_s, timed)
    correct = record.correct is True
    if record.probs is None:
        return (float(correct), nan, nan, nan, record.latency_s, timed)
    score = error = nan
    if task is not None and task.gold is not None:
        scored = Scored(task.kind, task.gold, record.probs, correct)
        score = brier(scored)
        if task.kind is Kind.SCORE:
            error = ordinal_error(scored)
    confidence = max(record.probs.values())
    return (float(correct), score, error, confidence, record.latency_s, timed)
