"""One trace a task: what was asked and what came back. Nothing here knows MLflow's interface."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jevexp.core.record import Record
from jevexp.core.task import Task

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
    rows = (
        (_row(record, None) for record in records)
        if tasks is None
        else (_row(record, task) if record else _gap(task) for task, record in met(tasks, records))
    )
    return {
        "columns": list(COLUMNS),
        "data": [[row.get(name) for name in COLUMNS] for row in rows],
    }


def met(tasks: Iterable[Task], records: Iterable[Record]) -> Iterator[tuple[Task, Record | None]]:
    """Each task with its record; while both are in one order, no more than one is held."""
    rest = iter(records)
    waiting: dict[str, Record] = {}
    for task in tasks:
        found = waiting.pop(task.id, None)
        while found is None and (record := next(rest, None)) is not None:
            if record.task_id == task.id:
                found = record
            else:
                waiting[record.task_id] = record
        yield task, found


def _row(record: Record, task: Task | None) -> dict[str, Any]:
    gold = record.predicted if record.correct else None
    expected = task.gold if task else gold
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
    return {
        "task_id": task.id,
        "family": task.family,
        "outcome": "not attempted",
        "expected": task.gold,
    }


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
