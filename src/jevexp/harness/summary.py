"""Summarizes a run's records as the benchmark does, number for number.

Every mean over an empty sample is null, never 0. A failure counts as wrong, an unattempted task
does not count at all. Sums are exact and order makes no difference.
"""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from sys import intern
from typing import NamedTuple

from jevexp.core.record import (
    Calibration,
    CalibrationBin,
    GroupSummary,
    Latency,
    ParaphraseConsistency,
    Record,
    Summary,
)
from jevexp.core.task import Kind, Task
from jevexp.harness.scoring import expected_level

VERSION = "jevbench-v1"
ECE_BINS = 10


def summarize(
    tasks: Iterable[Task], records: Iterable[Record], *, ledger_charged_usd: float | None = None
) -> Summary:
    """Summarize the records of one run over the tasks that were planned.

    Both are looked at one by one, and of each only a few numbers are kept.

    Args:
        tasks: every planned task, attempted or not.
        records: at most one record a task, in any order.
        ledger_charged_usd: what the run's ledger says; passed through.

    Raises ValueError: a task has two records, or a record belongs to no planned task.
    """
    everything = Group()
    families, splits = defaultdict[str, Group](Group), defaultdict[str, Group](Group)
    wordings: Counter[str | None] = Counter()
    answers = defaultdict[str | None, list[_Answer]](list)
    planned: dict[str, _Planned | None] = {}
    for task in tasks:
        plan = planned[task.id] = _Planned.of(task)
        for group in (everything, families[plan.family], splits[plan.split]):
            group.planned += 1
        wordings[plan.group] += 1
    del wordings[None]
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
        if wordings[attempted.group] == 2:
            answer = _Answer(record.valid, record.predicted, record.correct is True)
            answers[attempted.group].append(answer)
        models.add(record.model)
        sources.add(record.probs_source)
    per_family = {name: families[name].summary() for name in sorted(families)}
    accuracies = [part.accuracy for part in per_family.values() if part.accuracy is not None]
    pairs = sum(count == 2 for count in wordings.values())
    return Summary(
        **dict(everything.summary()),
        version=VERSION,
        macro_accuracy=mean(accuracies),
        per_family=per_family,
        complete=everything.attempted == everything.planned,
        paraphrase_consistency=_consistency(pairs, answers.values()),
        model_identities=sorted(models),
        probability_sources=sorted(sources),
        splits={name: splits[name].summary() for name in sorted(splits)},
        ledger_charged_usd=ledger_charged_usd,
    )


class _Planned(NamedTuple):
    """What the summary has to know of a task; equal names share one string."""

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

    def scored(self, record: Record) -> "Scored | None":
        if not self.scorable or record.probs is None or self.gold is None:
            return None
        return Scored(self.kind, self.gold, record.probs, record.correct is True)


class _Answer(NamedTuple):
    valid: bool
    predicted: str | None
    correct: bool


def _consistency(pairs: int, answers: Iterable[Sequence[_Answer]]) -> ParaphraseConsistency:
    """How many pairs of wordings there are, agree, and are right in both."""
    both_valid = [
        pair for pair in answers if len(pair) == 2 and all(answer.valid for answer in pair)
    ]
    agree = sum(first.predicted == second.predicted for first, second in both_valid)
    both_correct = sum(all(answer.correct for answer in pair) for pair in both_valid)
    return ParaphraseConsistency(
        pairs=pairs,
        both_valid=len(both_valid),
        agree=agree,
        agreement=ratio(agree, len(both_valid)),
        both_correct_rate_all_pairs=ratio(both_correct, pairs),
    )


class Scored(NamedTuple):
    """A valid distribution on a task with a truth."""

    kind: Kind
    gold: str
    probs: dict[str, float]
    correct: bool


class Group:
    """Counts and samples of a group of tasks; `planned` is counted from outside.

    Eight bytes a record and number are kept, and nothing else.
    """

    def __init__(self) -> None:
        self.planned = self.attempted = 0
        self._scorable = self._valid = self._strict = self._renormalized = self._ok = 0
        self._correct = 0
        self._briers, self._ordinal_errors = array("d"), array("d")
        self._latencies, self._failures, self._costs = array("d"), array("d"), array("d")
        self._cost_bases: set[str] = set()
        # By bin of the top label's probability: those probabilities, and how many were right.
        self._confidences = [array("d") for _ in range(ECE_BINS)]
        self._right = [0] * ECE_BINS

    def add(self, record: Record, scored: Scored | None, *, scorable: bool) -> None:
        """Take in one record; `scored` where it is a valid distribution on a task with a truth."""
        self.attempted += 1
        self._scorable += scorable
        self._correct += scorable and record.correct is True
        self._valid += record.valid
        self._strict += record.strict_valid
        self._renormalized += record.renormalized
        self._ok += record.ok
        self._latencies.append(record.latency_s)
        if not record.ok:
            self._failures.append(record.latency_s)
        if record.cost_usd is not None:
            self._costs.append(record.cost_usd)
        self._cost_bases.add(record.cost_basis)
        if scored is not None:
            self._briers.append(brier(scored))
            if scored.kind is Kind.SCORE:
                self._ordinal_errors.append(ordinal_error(scored))
            top = max(scored.probs.values())
            index = min(int(top * ECE_BINS), ECE_BINS - 1)
            self._confidences[index].append(top)
            self._right[index] += scored.correct

    def summary(self) -> GroupSummary:
        """The group's part of the summary."""
        n = self.attempted
        all_costs_known = n and len(self._costs) == n
        return GroupSummary(
            n_planned=self.planned,
            n_attempted=n,
            n_scorable=self._scorable,
            n_valid=self._valid,
            n_correct=self._correct,
            accuracy=ratio(self._correct, self._scorable),
            coverage=ratio(n, self.planned),
            schema_validity=ratio(self._valid, n),
            schema_validity_strict=ratio(self._strict, n),
            n_renormalized=self._renormalized,
            operational_success=ratio(self._ok, n),
            calibration_n=len(self._briers),
            brier_mean=mean(self._briers),
            ece=self._calibration(),
            ordinal_mae=mean(self._ordinal_errors),
            latency=_latency(self._latencies),
            latency_failures=_latency(self._failures),
            price_per_1000_decisions_usd=(
                1000 * math.fsum(self._costs) / n if all_costs_known else None
            ),
            cost_basis=sorted(self._cost_bases),
        )

    def _calibration(self) -> Calibration | None:
        """Expected calibration error of the top label, over equal-width bins."""
        # Guo et al. (2017), "On Calibration of Modern Neural Networks", equation 3. The last bin
        # includes 1. None for an empty sample.
        if not (n := len(self._briers)):
            return None
        ece = 0.0
        bins = []
        for index, (confidences, right) in enumerate(
            zip(self._confidences, self._right, strict=True)
        ):
            size = len(confidences)
            confidence, accuracy = mean(confidences), ratio(right, size)
            if confidence is not None and accuracy is not None:
                ece += size / n * abs(confidence - accuracy)
            lo, hi = index / ECE_BINS, (index + 1) / ECE_BINS
            bins.append(
                CalibrationBin(lo=lo, hi=hi, n=size, mean_confidence=confidence, accuracy=accuracy)
            )
        return Calibration(ece=ece, n=n, bins=bins)


def brier(scored: Scored) -> float:
    """Sum over the labels of (p - 1[label is right])^2: 0 is perfect, 2 the worst.

    Brier (1950), Monthly Weather Review 78(1), in its original multi-category form.
    """
    return math.fsum((p - (label == scored.gold)) ** 2 for label, p in scored.probs.items())


def ordinal_error(scored: Scored) -> float:
    """Distance in levels between the expected level of the distribution and the right one."""
    return abs(expected_level(scored.probs) - int(scored.gold))


def _latency(seconds: Sequence[float]) -> Latency:
    return Latency(n=len(seconds), p50_s=percentile(seconds, 0.50), p95_s=percentile(seconds, 0.95))


def percentile(values: Sequence[float], share: float) -> float | None:
    """Percentile by linear interpolation between the two nearest ranks; None for no values."""
    if not values:
        return None
    ranked = sorted(values)
    position = share * (len(ranked) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (ranked[above] - ranked[below]) * (position - below)


def ratio(part: int, whole: int) -> float | None:
    """A share; None where the whole is 0."""
    return part / whole if whole else None


def mean(values: Sequence[float]) -> float | None:
    """The mean, with an exact sum; None for no values."""
    return math.fsum(values) / len(values) if values else None
