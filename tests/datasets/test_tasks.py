"""Tasks kept as lines are the tasks that were read."""

from pathlib import Path

import pytest

from jevexp.datasets import load_tasks
from jevexp.datasets.tasks import Tasks

LINES = (Path(__file__).parents[1] / "conformance/tasks.jsonl").read_bytes().splitlines(True)
ALL = load_tasks(Path(__file__).parents[1] / "conformance/tasks.jsonl")


def test_they_are_a_sequence_of_the_same_tasks_every_time() -> None:
    tasks = Tasks(LINES)
    assert len(tasks) == len(ALL) == 36
    assert list(tasks) == list(tasks) == ALL
    assert (tasks[0], tasks[-1]) == (ALL[0], ALL[-1])
    assert list(tasks[5:9]) == ALL[5:9]
    assert list(tasks[:None]) == ALL
    assert ALL[7] in tasks
    with pytest.raises(IndexError):
        tasks[36]


def test_options_keep_the_order_of_the_file() -> None:
    for line, task in zip(LINES, Tasks(LINES), strict=True):
        if isinstance(task.question.criteria, dict):
            places = [line.find(f'"{label}":'.encode()) for label in task.question.criteria]
            assert places == sorted(places)
