"""Runs held against a baseline, pair by pair, as plain data."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jevexp.analysis.metric import Metric, Options, accuracy, ece_difference, mean_difference
from jevexp.analysis.pairing import (
    Differences,
    Pair,
    brier_of,
    correctness,
    differences,
    level_error_of,
    pair_up,
)
from jevexp.analysis.runs import FinishedRun, check_comparable, remarks
from jevexp.analysis.statistics.holm import holm
from jevexp.analysis.statistics.interval import Interval


@dataclass(frozen=True, slots=True)
class Flip:
    """A task that one side gets right and the other wrong; a side without an answer has null."""

    task_id: str
    right: str
    baseline: dict[str, float] | None
    candidate: dict[str, float] | None
    distance: float | None


@dataclass(frozen=True, slots=True)
class Latency:
    """Geometric mean over tasks of candidate's seconds over baseline's, and its interval."""

    ratio: float
    interval: Interval | None
    n: int


@dataclass(frozen=True, slots=True)
class Side:
    """One run of a pair: tasks requested, attempted and validly answered, paraphrase agreement."""

    run: str
    path: str
    model: str
    requested: int
    attempted: int
    valid: int
    paraphrases: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class PairResult:
    """A candidate held against the baseline.

    `paired` counts the tasks that both attempted, `clusters` the paraphrase groups among them.
    """

    baseline: Side
    candidate: Side
    remarks: list[str]
    paired: int
    clusters: int
    metrics: list[Metric]
    distance_mean: float | None
    distance_max: float | None
    flips: list[Flip]
    latency: Latency | None


def compare(runs: Sequence[FinishedRun], options: Options) -> list[PairResult]:
    """Hold every run after the first against the first.

    The p values are adjusted over all metrics of all pairs.

    Raises:
        InputError: the runs were not put the same tasks, or two have none in common.
    """
    check_comparable(runs)
    baseline, *candidates = runs
    results = [_compare(baseline, candidate, options) for candidate in candidates]
    tested = [metric for result in results for metric in result.metrics if metric.p is not None]
    adjusted = iter(holm([metric.p for metric in tested if metric.p is not None]))
    return [
        replace(
            result,
            metrics=[
                metric if metric.p is None else metric.judged(next(adjusted), options)
                for metric in result.metrics
            ],
        )
        for result in results
    ]


def _compare(baseline: FinishedRun, candidate: FinishedRun, options: Options) -> PairResult:
    pairs = pair_up(baseline, candidate)
    scorable = [pair for pair in pairs if pair.scorable]
    metrics = [
        accuracy(differences(pairs, correctness), options),
        mean_difference("brier", differences(pairs, brier_of), options),
        ece_difference(scorable, options),
        mean_difference("mae", differences(pairs, level_error_of), options),
    ]
    distances = [found for pair in pairs if (found := pair.distance) is not None]
    return PairResult(
        baseline=_side(baseline),
        candidate=_side(candidate),
        remarks=remarks(baseline, candidate),
        paired=len(pairs),
        clusters=len({pair.cluster for pair in pairs}),
        metrics=[metric for metric in metrics if metric is not None],
        distance_mean=math.fsum(distances) / len(distances) if distances else None,
        distance_max=max(distances, default=None),
        flips=_flips(scorable),
        latency=_latency(pairs, options),
    )


def _side(run: FinishedRun) -> Side:
    manifest = run.manifest
    return Side(
        run=manifest.run,
        path=str(run.path),
        model=str(manifest.model.declared["name"]),
        requested=manifest.counts.requested,
        attempted=len(run.records),
        valid=sum(record.valid for record in run.records.values()),
        paraphrases=run.summary["paraphrase_consistency"] if run.summary else None,
    )


def _flips(pairs: Sequence[Pair]) -> list[Flip]:
    """What the candidate lost, then what it gained, the largest change of mind first."""
    flips = [
        Flip(
            pair.baseline.task_id,
            "baseline" if pair.baseline.correct else "candidate",
            pair.baseline.probs,
            pair.candidate.probs,
            pair.distance,
        )
        for pair in pairs
        if (pair.baseline.correct is True) != (pair.candidate.correct is True)
    ]
    return sorted(flips, key=lambda flip: (flip.right, -(flip.distance or 0.0), flip.task_id))


def _latency(pairs: Sequence[Pair], options: Options) -> Latency | None:
    timed = [
        pair
        for pair in pairs
        if pair.baseline.valid
        and pair.candidate.valid
        and min(pair.baseline.latency_s, pair.candidate.latency_s) > 0
    ]
    logs = [math.log(pair.candidate.latency_s / pair.baseline.latency_s) for pair in timed]
    found = mean_difference("latency", Differences(logs, [p.cluster for p in timed]), options)
    if found is None:
        return None
    interval = found.interval and Interval(*map(math.exp, found.interval))
    return Latency(math.exp(found.delta), interval, found.n)
