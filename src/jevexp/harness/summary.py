"""What a run's records come to: the benchmark's summary, number for number.

Every mean over an empty sample is null, never 0. A failure counts as wrong, an unattempted task
does not count at all.
"""

from collections import defaultdict
from collections.abc import Iterable
from sys import intern
from typing import NamedTuple

from jevexp.core.record import Record
from jevexp.core.summary import ParaphraseConsistency, Summary
from jevexp.core.task import Kind, Task
from jevexp.harness.groups import Group, Scored, mean, ratio

VERSION = "jevbench-v1"


def summarize(
    tasks: Iterable[Task],
    records: Iterable[Record],
    *,
    ledger_charged_usd: float | None = None,
) -> Summary:
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
    per_family = {name: families[name].summary() for name in sorted(families)}
    accuracies = [part.accuracy for part in per_family.values() if part.accuracy is not None]
    return Summary(
        **dict(everything.summary()),
        version=VERSION,
        macro_accuracy=mean(accuracies),
        per_family=per_family,
        complete=everything.attempted == everything.planned,
        paraphrase_consistency=pairs.consistency(),
        model_identities=sorted(models),
        probability_sources=sorted(sources),
        splits={name: splits[name].summary() for name in sorted(splits)},
        ledger_charged_usd=ledger_charged_usd,
    )


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


class _Answer(NamedTuple):
    valid: bool
    predicted: str | None
    correct: bool


class Paraphrases:
    """The groups of tasks that share a name; pairs are those of exactly two."""

    def __init__(self) -> None:
        self._planned: dict[str, int] = {}
        self._answers: dict[str, list[_Answer]] = {}

    def plan(self, group: str | None) -> None:
        """Count a planned task of this group, if it has one."""
        if group is not None:
            self._planned[group] = self._planned.get(group, 0) + 1

    def add(self, group: str | None, record: Record) -> None:
        """Take in the record of a task of this group, once all tasks are planned."""
        if group is not None and self._planned[group] == 2:
            answer = _Answer(record.valid, record.predicted, record.correct is True)
            self._answers.setdefault(group, []).append(answer)

    def consistency(self) -> ParaphraseConsistency:
        """How many pairs there are, agree, and are right in both wordings."""
        pairs = sum(count == 2 for count in self._planned.values())
        whole = [pair for pair in self._answers.values() if len(pair) == 2]
        both_valid = [pair for pair in whole if all(answer.valid for answer in pair)]
        agree = sum(first.predicted == second.predicted for first, second in both_valid)
        both_correct = sum(all(answer.correct for answer in pair) for pair in both_valid)
        return ParaphraseConsistency(
            pairs=pairs,
            both_valid=len(both_valid),
            agree=agree,
            agreement=ratio(agree, len(both_valid)),
            both_correct_rate_all_pairs=ratio(both_correct, pairs),
        )
