"""What a run's records come to: the benchmark's summary, number for number.

Every mean over an empty sample is null, never 0. A failure counts as wrong, an unattempted task
does not count at all.
"""

from collections import defaultdict
from collections.abc import Iterable
from sys import intern
from typing import Any, NamedTuple

from jevexp.core.record import Record
from jevexp.core.task import Kind, Task
from jevexp.harness.groups import Group, Scored, mean
from jevexp.harness.paraphrases import Paraphrases

VERSION = "jevbench-v1"


def summarize(
    tasks: Iterable[Task],
    records: Iterable[Record],
    *,
    ledger_charged_usd: float | None = None,
) -> dict[str, Any]:
    """Summarize the records of one run over the tasks that were planned.

    Both are looked at one by one, and of each only a few numbers are kept.

    Args:
        tasks: every planned task, attempted or not.
        records: at most one record a task, in any order.
        ledger_charged_usd: what the run's ledger says; passed through.

    Raises:
        ValueError: a task has two records, or a record belongs to no planned task.
    """
    everything = Group()
    families, splits = defaultdict[str, Group](Group), defaultdict[str, Group](Group)
    pairs = Paraphrases()
    planned: dict[str, _Planned | None] = {}
    for task in tasks:
        of = planned[task.id] = _Planned.of(task)
        for group in (everything, families[of.family], splits[of.split]):
            group.planned += 1
        pairs.plan(of.group)
    models, sources = set(), set()
    for record in records:
        if record.task_id not in planned:
            raise ValueError(f"task {record.task_id!r}: has a record and was never planned")
        attempted = planned[record.task_id]
        if attempted is None:
            raise ValueError(f"task {record.task_id!r}: has two records")
        planned[record.task_id] = None
        scored = attempted.scored(record)
        for group in (everything, families[attempted.family], splits[attempted.split]):
            group.add(record, scored, scorable=attempted.scorable)
        pairs.add(attempted.group, record)
        models.add(record.model)
        sources.add(record.probs_source)
    per_family = {name: families[name].numbers() for name in sorted(families)}
    return everything.numbers() | {
        "version": VERSION,
        "macro_accuracy": mean(
            [part["accuracy"] for part in per_family.values() if part["accuracy"] is not None]
        ),
        "per_family": per_family,
        "complete": everything.attempted == everything.planned,
        "paraphrase_consistency": pairs.numbers(),
        "model_identities": sorted(models),
        "probability_sources": sorted(sources),
        "splits": {name: splits[name].numbers() for name in sorted(splits)},
        "ledger_charged_usd": ledger_charged_usd,
    }


class _Planned(NamedTuple):
    """What the summary has to know of a task; a name that many share is there once."""

    family: str
    split: str
    group: str | None
    kind: Kind
    gold: str | None
    scorable: bool

    @classmethod
    def of(cls, task: Task) -> "_Planned":
        group = None if task.group is None else intern(task.group)
        gold = None if task.gold is None else intern(task.gold)
        family, split = intern(task.family), intern(task.split)
        return cls(family, split, group, task.kind, gold, task.scorable)

    def scored(self, record: Record) -> Scored | None:
        if not self.scorable or record.probs is None or self.gold is None:
            return None
        return Scored(self.kind, self.gold, record.probs, record.correct is True)
