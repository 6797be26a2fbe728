"""One trace a task: what was asked and what came back. Nothing here knows MLflow's interface."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.tracking.table import met, outcome


@dataclass(frozen=True, slots=True)
class Trace:
    """One answered task.

    Attributes:
        task_id: the task's id, and the trace's name.
        family: the task's family.
        inputs: what was asked, the same for every run: the evaluation view pairs by it. The right
            answer is no part of it.
        outputs: the prediction and the distribution, or what went wrong.
        ok: whether a valid answer came back.
        start_ns: when it was asked, in nanoseconds since the epoch.
        end_ns: when the answer was there.
        expected: the right answer; None where none is known.
        assessments: what the answer is worth, by name.
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


def traces(records: Iterable[Record], tasks: Iterable[Task]) -> Iterator[Trace]:
    """The traces of a run's records, in their order."""
    for task, record in met(tasks, records):
        if record is not None:
            yield _trace(record, task)


def _trace(record: Record, task: Task) -> Trace:
    # A record is stamped when its answer is there.
    end_ns = round(record.ts * 1e9)
    return Trace(
        task_id=task.id,
        family=task.family,
        # The id comes first: MLflow pairs by the start of what it shows, and states are long.
        inputs={
            "task_id": task.id,
            "question": task.question.model_dump(mode="json", exclude_unset=True),
            "state": task.state,
        },
        outputs=_outputs(record),
        ok=record.ok and record.valid,
        start_ns=end_ns - round(record.latency_s * 1e9),
        end_ns=end_ns,
        expected=task.gold,
        assessments=_assessments(record, task),
    )


def _outputs(record: Record) -> dict[str, Any]:
    if record.ok and record.valid:
        return {"predicted": record.predicted, "probs": record.probs}
    return {"error": record.error or record.schema_error, "probs": record.probs_as_returned}


def _assessments(record: Record, task: Task) -> dict[str, bool | float | str]:
    found: dict[str, bool | float | str] = {"outcome": outcome(record, task)}
    if record.correct is not None and task.scorable:
        found["correct"] = record.correct
    if task.gold is not None and (p := (record.probs or {}).get(task.gold)) is not None:
        found["p_expected"] = round(p, 4)
    return found
