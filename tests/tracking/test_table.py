"""The per-task table: one row a task, whatever became of it."""

from collections.abc import Iterator
from typing import Any

import pytest

from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.tracking.mlflow.content import pair_with_records, per_task
from tests.support.runs import failure, noul_tasks, record, wrong


def rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]


def test_every_outcome_has_its_word() -> None:
    tasks = noul_tasks(5)
    records = [
        record(tasks[0]),
        wrong(tasks[1]),
        failure(tasks[2]),
        record(tasks[3], valid=False, correct=False, probs=None, schema_error="abstained"),
    ]

    found = rows(per_task(records, tasks))

    assert [row["outcome"] for row in found] == [
        "correct",
        "wrong",
        "failed",
        "invalid",
        "not attempted",
    ]
    assert [row["error"] for row in found] == [None, None, "timeout", "abstained", None]


def test_a_task_that_does_not_count_is_unscored() -> None:
    (task,) = noul_tasks(1)
    no_truth = task.model_copy(update={"expected": None})
    excluded = task.model_copy(update={"id": "t1", "provenance": {"exclude_reason": "ambiguous"}})

    found = rows(per_task([record(no_truth, correct=None), record(excluded)], [no_truth, excluded]))

    assert [row["outcome"] for row in found] == ["unscored", "unscored"]


def test_rows_follow_the_tasks_and_not_the_records() -> None:
    tasks = noul_tasks(2)

    found = rows(per_task([record(tasks[1]), record(tasks[0])], tasks))

    assert [row["task_id"] for row in found] == ["t0", "t1"]


def test_the_right_answer_gets_its_probability() -> None:
    (task,) = noul_tasks(1)

    (row,) = rows(per_task([wrong(task)], [task]))

    assert (row["expected"], row["predicted"]) == ("yes", "no")
    assert (row["p_expected"], row["p_predicted"]) == (0.25, 0.75)


def test_without_tasks_only_a_right_answer_tells_what_was_expected() -> None:
    tasks = noul_tasks(2)

    right, mistaken = rows(per_task([record(tasks[0]), wrong(tasks[1])], None))

    assert (right["expected"], right["outcome"]) == ("yes", "correct")
    assert (mistaken["expected"], mistaken["outcome"]) == (None, "wrong")


def test_mlflow_pairs_by_task_and_compares_outcomes_first() -> None:
    assert per_task([], [])["columns"][:2] == ["task_id", "outcome"]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3], []])
def test_records_meet_their_tasks_in_whatever_order_they_are(order: list[int]) -> None:
    tasks = noul_tasks(4)
    found_ = [
        (task.id, found and found.task_id)
        for task, found in pair_with_records(tasks, records(tasks, order))
    ]
    assert found_ == [(f"t{n}", f"t{n}" if n in order else None) for n in range(4)]


def records(tasks: list[Task], order: list[int]) -> Iterator[Record]:
    return (record(tasks[number]) for number in order)
