"""What a run's records come to: the benchmark's summary, number for number.

Every mean over an empty sample is null, never 0. A failure counts as wrong, an unattempted task
does not count at all.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from jevexp.domain.record import Record
from jevexp.domain.task import Kind, Task
from jevexp.harness.scoring import expected_level

VERSION = "jevbench-v1"
ECE_BINS = 10


def summarize(
    tasks: Sequence[Task],
    records: Iterable[Record],
    *,
    ledger_charged_usd: float | None = None,
) -> dict[str, Any]:
    """Summarize the records of one run over the tasks that were planned.

    Args:
        tasks: every planned task, attempted or not.
        records: at most one record a task, in any order.
        ledger_charged_usd: what the run's ledger says; passed through.

    Raises:
        ValueError: a task has two records, or a record belongs to no planned task.
    """
    by_id = _by_task(tasks, records)
    summary = _group(tasks, by_id)
    families = _partition(tasks, attrgetter("family"))
    per_family = {name: _group(part, by_id) for name, part in families.items()}
    splits = _partition(tasks, attrgetter("split"))
    return summary | {
        "version": VERSION,
        "macro_accuracy": _mean(
            [part["accuracy"] for part in per_family.values() if part["accuracy"] is not None]
        ),
        "per_family": per_family,
        "complete": len(by_id) == len(tasks),
        "paraphrase_consistency": _paraphrase_consistency(tasks, by_id),
        "model_identities": sorted({record.model for record in by_id.values()}),
        "probability_sources": sorted({record.probs_source for record in by_id.values()}),
        "splits": {name: _group(part, by_id) for name, part in splits.items()},
        "ledger_charged_usd": ledger_charged_usd,
    }


def _by_task(tasks: Sequence[Task], records: Iterable[Record]) -> dict[str, Record]:
    planned = {task.id for task in tasks}
    by_id: dict[str, Record] = {}
    for record in records:
        if record.task_id not in planned:
            raise ValueError(f"task {record.task_id!r}: has a record and was never planned")
        if record.task_id in by_id:
            raise ValueError(f"task {record.task_id!r}: has two records")
        by_id[record.task_id] = record
    return by_id


def _partition(tasks: Sequence[Task], key: Callable[[Task], str]) -> dict[str, list[Task]]:
    return {name: list(part) for name, part in groupby(sorted(tasks, key=key), key=key)}


def _group(tasks: Sequence[Task], by_id: dict[str, Record]) -> dict[str, Any]:
    """The numbers of one group of tasks."""
    attempted = [(task, by_id[task.id]) for task in tasks if task.id in by_id]
    records = [record for _, record in attempted]
    scorable = [(task, record) for task, record in attempted if task.scorable]
    scored = [
        Scored(task.kind, task.gold, record.probs, record.correct is True)
        for task, record in scorable
        if record.probs is not None and task.gold is not None
    ]
    n = len(attempted)
    n_correct = sum(record.correct is True for _, record in scorable)
    costs = [record.cost_usd for record in records if record.cost_usd is not None]
    return {
        "n_planned": len(tasks),
        "n_attempted": n,
        "n_scorable": len(scorable),
        "n_valid": sum(record.valid for record in records),
        "n_correct": n_correct,
        "accuracy": _ratio(n_correct, len(scorable)),
        "coverage": _ratio(n, len(tasks)),
        "schema_validity": _ratio(sum(record.valid for record in records), n),
        "schema_validity_strict": _ratio(sum(record.strict_valid for record in records), n),
        "n_renormalized": sum(record.renormalized for record in records),
        "operational_success": _ratio(sum(record.ok for record in records), n),
        "calibration_n": len(scored),
        "brier_mean": _mean([brier(one) for one in scored]),
        "ece": _calibration(scored),
        "ordinal_mae": _mean([ordinal_error(one) for one in scored if one.kind is Kind.SCORE]),
        "latency": _latency([record.latency_s for record in records]),
        "latency_failures": _latency([record.latency_s for record in records if not record.ok]),
        "price_per_1000_decisions_usd": (
            1000 * math.fsum(costs) / n if n and len(costs) == n else None
        ),
        "cost_basis": sorted({record.cost_basis for record in records}),
    }


class Scored(NamedTuple):
    """A valid distribution on a task with a truth."""

    kind: Kind
    gold: str
    probs: dict[str, float]
    correct: bool


def brier(scored: Scored) -> float:
    """Sum over the labels of (p - 1[label is right])^2: 0 is perfect, 2 the worst.

    Brier (1950), Monthly Weather Review 78(1), in its original multi-category form.
    """
    return math.fsum((p - (label == scored.gold)) ** 2 for label, p in scored.probs.items())


def ordinal_error(scored: Scored) -> float:
    """Distance in levels between the expected level of the distribution and the right one."""
    return abs(expected_level(scored.probs) - int(scored.gold))


def _calibration(sample: Sequence[Scored]) -> dict[str, Any] | None:
    """Expected calibration error of the top label, over equal-width bins.

    Guo et al. (2017), "On Calibration of Modern Neural Networks", equation 3. The last bin
    includes 1. None for an empty sample.
    """
    if not sample:
        return None
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(ECE_BINS)]
    for one in sample:
        top = max(one.probs.values())
        bins[min(int(top * ECE_BINS), ECE_BINS - 1)].append((top, one.correct))
    ece = 0.0
    rows = []
    for index, members in enumerate(bins):
        confidence = _mean([confidence for confidence, _ in members])
        accuracy = _mean([float(correct) for _, correct in members])
        if confidence is not None and accuracy is not None:
            ece += len(members) / len(sample) * abs(confidence - accuracy)
        rows.append(
            {
                "lo": index / ECE_BINS,
                "hi": (index + 1) / ECE_BINS,
                "n": len(members),
                "mean_confidence": confidence,
                "accuracy": accuracy,
            }
        )
    return {"ece": ece, "n": len(sample), "bins": rows}


def _latency(seconds: Sequence[float]) -> dict[str, Any]:
    return {
        "n": len(seconds),
        "p50_s": percentile(seconds, 0.50),
        "p95_s": percentile(seconds, 0.95),
    }


def percentile(values: Sequence[float], share: float) -> float | None:
    """Percentile by linear interpolation between the two nearest ranks; None for no values."""
    if not values:
        return None
    ranked = sorted(values)
    position = share * (len(ranked) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (ranked[above] - ranked[below]) * (position - below)


def _paraphrase_consistency(tasks: Sequence[Task], by_id: dict[str, Record]) -> dict[str, Any]:
    """How often the two wordings of one question get the same answer."""
    grouped = _partition([task for task in tasks if task.group is not None], _group_name)
    pairs = [part for part in grouped.values() if len(part) == 2]
    answered = [[by_id[task.id] for task in pair if task.id in by_id] for pair in pairs]
    both_valid = [pair for pair in answered if len(pair) == 2 and all(r.valid for r in pair)]
    agree = sum(first.predicted == second.predicted for first, second in both_valid)
    both_correct = sum(all(record.correct is True for record in pair) for pair in both_valid)
    return {
        "pairs": len(pairs),
        "both_valid": len(both_valid),
        "agree": agree,
        "agreement": _ratio(agree, len(both_valid)),
        "both_correct_rate_all_pairs": _ratio(both_correct, len(pairs)),
    }


def _group_name(task: Task) -> str:
    return task.group or ""


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
