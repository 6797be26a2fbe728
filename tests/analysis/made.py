"""Finished runs of a comparison, made by hand."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from jevexp.analysis.runs import FinishedRun, read_run
from jevexp.domain.task import Task
from tests.support.runs import make_run, noul_tasks


def counts(requested: int) -> dict[str, int]:
    return dict.fromkeys(("requested", "attempted", "answered", "valid"), requested)


def grouped_tasks(groups: int) -> list[Task]:
    """Two wordings of each question."""
    return [
        task.model_copy(update={"group": f"g{number // 2}"})
        for number, task in enumerate(noul_tasks(2 * groups))
    ]


def finished(
    path: Path, tasks: Sequence[Task], wrong_ids: Collection[str] = (), **changed: Any
) -> FinishedRun:
    """A run that answers all tasks, read back."""
    fields = {"counts": counts(len(tasks))} | changed
    return read_run(make_run(path, tasks, wrong_ids=wrong_ids, **fields), lambda _: tasks)
