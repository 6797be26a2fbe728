"""One row a task, so that MLflow shows the same task of several runs side by side."""

from collections.abc import Iterable, Iterator, Sequence
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
