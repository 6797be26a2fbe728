"""Finished runs of a comparison, made by hand."""

import csv
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any

from jevexp.analysis.compare import compare
from jevexp.analysis.comparison import Comparison
from jevexp.analysis.estimates import Options
from jevexp.analysis.runs import Answer, FinishedRun, read_run
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.datasets.tasks import load_tasks
from jevexp.harness.summary import summarize
from tests.support.runs import WEIGHTS, make_run, manifest, noul_tasks, record


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a table by their columns."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


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


def sampled(
    path: Path, tasks: Sequence[Task], *, skill: float, seed: int, name: str, **changed: Any
) -> FinishedRun:
    """A run whose distributions are drawn at random, leaning towards the truth by `skill`."""
    generator = Random(seed)
    records = [_sampled(task, skill, generator) for task in tasks]
    declared = {
        "name": name,
        "alias": name,
        "weights": {"file": None, "sha256": WEIGHTS, "bytes": 10**8 * (seed + 1)},
        "quantization": {"label": "Q2_K"},
    }
    model = {"requested": name, "session": None, "resolved": [name], "declared": declared}
    fields: dict[str, Any] = {"counts": counts(len(tasks)), "model": model}
    return FinishedRun(
        path,
        manifest(path, **fields | changed),
        {one.task_id: Answer.of(one) for one in records},
        {task.id: task for task in tasks},
        summarize(tasks, records),
    )


def _sampled(task: Task, skill: float, generator: Random) -> Record:
    weights = [generator.random() ** 3 for _ in task.labels]
    if task.gold is not None and generator.random() < skill:
        weights[task.labels.index(task.gold)] += 1
    probs = {label: one / sum(weights) for label, one in zip(task.labels, weights, strict=True)}
    probs = {label: round(share, 6) for label, share in probs.items()}
    predicted = max(sorted(probs), key=probs.__getitem__)
    return record(
        task,
        probs=probs,
        probs_as_returned=probs,
        predicted=predicted,
        correct=predicted == task.gold,
        latency_s=0.2 + generator.random(),
    )


@dataclass(frozen=True)
class Compared:
    """Runs and what came of comparing them."""

    runs: list[FinishedRun]
    comparison: Comparison


def demo_tasks() -> list[Task]:
    """The shipped tasks: all three kinds, six families, two wordings of each question."""
    with resources.as_file(resources.files("jevexp.datasets") / "demo.jsonl") as path:
        return load_tasks(path)


def compared(tasks: Sequence[Task], *skills: float) -> Compared:
    """Runs of these skills; the first one is the baseline, and no name has a digit."""
    names = ("alpha", "beta", "gamma", "delta", "epsilon")
    runs = [
        sampled(Path(f"/runs/{name}"), tasks, skill=skill, seed=seed, name=name)
        for seed, (name, skill) in enumerate(zip(names, skills, strict=False))
    ]
    return Compared(runs, compare(runs, Options(draws=200)))
