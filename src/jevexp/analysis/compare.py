"""Runs on the same tasks: each by itself, held against a baseline, and all against all."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from jevexp.analysis.comparison import (
    Comparison,
    Flip,
    LatencyRatio,
    MatrixCell,
    Mistake,
    PairResult,
    RunStatistics,
)
from jevexp.analysis.conditions import latency_warnings, remarks
from jevexp.analysis.estimates import (
    Difference,
    Options,
    Sums,
    columns_of,
    mean_columns,
    mean_difference,
)
from jevexp.analysis.metrics import ACCURACY, LATENCY, METRICS, values_of_tasks
from jevexp.analysis.run_statistics import RunSample
from jevexp.analysis.runs import (
    Answers,
    Axis,
    FinishedRun,
    answers_of,
    axis_of,
    check_comparable,
)
from jevexp.analysis.statistics.intervals import Interval
from jevexp.analysis.statistics.resampling import Resampling
from jevexp.analysis.statistics.verdicts import decide, holm
from jevexp.analysis.who import differing_settings, identity_fields, labels

if TYPE_CHECKING:
    from numpy import bool_
    from numpy.typing import NDArray


def compare(runs: Sequence[FinishedRun], options: Options) -> Comparison:
    """Compare runs; the first one is the baseline.

    All p values of the comparison are adjusted together: those of every metric of every pair with
    the baseline, and those of the accuracy of all other pairs.

    Raises:
        InputError: fewer than two runs, or they were not put the same tasks.
    """
    check_comparable(runs)
    return _compared(runs, options)


def describe(run: FinishedRun, options: Options) -> Comparison:
    """One run by itself, in the same form: no pairs, no tests, but its mistakes."""
    return replace(_compared([run], options), mistakes=_mistakes(run))


def _mistakes(run: FinishedRun) -> list[Mistake]:
    """The wrong answers that have a distribution, the surest first."""
    mistakes = [
        Mistake(task_id, answer.predicted, max(answer.probs.values()), answer.probs)
        for task_id, answer in run.records.items()
        if answer.correct is False and answer.probs
        if run.tasks is None or run.tasks[task_id].scorable
    ]
    return sorted(mistakes, key=lambda mistake: (-mistake.confidence, mistake.task_id))


def _compared(runs: Sequence[FinishedRun], options: Options) -> Comparison:
    axis = axis_of(runs)
    values = values_of_tasks()
    sides = [Side(index, run, answers_of(run, axis, values)) for index, run in enumerate(runs)]
    samples = [RunSample(side.run, side.answers, axis) for side in sides]
    pairs = [Pair(sides[0], candidate, axis) for candidate in sides[1:]]
    others = [Cell(first, second) for first, second in combinations(sides[1:], 2)]
    # All at once: with many tasks one pass over the draws takes most of the time.
    resampling = Resampling(axis.members, draws=options.draws, seed=options.seed)
    columns = [sample.columns for sample in samples]
    columns += [pair.columns for pair in pairs]
    columns += [cell.columns for cell in others]
    drawn = (Sums(sums, axis.members, options) for sums in resampling.sums(columns))
    statistics = [
        sample.statistics(next(drawn), label=label, settings=settings, identity_fields=fields)
        for sample, label, settings, fields in zip(
            samples, labels(runs), differing_settings(runs), identity_fields(runs), strict=True
        )
    ]
    results = [pair.result(next(drawn), runs) for pair in pairs]
    cells = [cell.result(next(drawn)) for cell in others]
    return _judged(runs, options, statistics, results, cells)


def _judged(
    runs: Sequence[FinishedRun],
    options: Options,
    statistics: list[RunStatistics],
    pairs: list[PairResult],
    others: list[MatrixCell],
) -> Comparison:
    """Adjust every p value of the command together and say what follows."""
    differences = [difference for pair in pairs for difference in pair.metrics]
    differences += [cell.accuracy for cell in others if cell.accuracy]
    p_values = [difference.p for difference in differences if difference.p is not None]
    adjusted = iter(holm(p_values))

    def judge(difference: Difference) -> Difference:
        return difference if difference.p is None else judged(difference, next(adjusted), options)

    # In the order in which the p values were collected.
    pairs = [replace(pair, metrics=list(map(judge, pair.metrics))) for pair in pairs]
    others = [
        replace(cell, accuracy=judge(cell.accuracy)) if cell.accuracy else cell for cell in others
    ]
    against_first = [
        MatrixCell(pair.baseline, pair.candidate, pair.difference(ACCURACY)) for pair in pairs
    ]
    dataset = runs[0].manifest.dataset
    return Comparison(
        options=options,
        dataset=dataset.name,
        dataset_hash=dataset.dataset_hash,
        tests=len(p_values),
        runs=statistics,
        pairs=pairs,
        matrix=against_first + others,
    )


def judged(difference: Difference, p_adjusted: float, options: Options) -> Difference:
    """The difference with its adjusted p and the verdict that follows."""
    verdict = decide(
        p=p_adjusted,
        interval=difference.interval,
        equivalence=difference.equivalence,
        clusters=difference.clusters,
        alpha=options.alpha,
        margin=options.margin,
        higher_is_better=METRICS[difference.name].higher_is_better,
    )
    return replace(difference, p_adjusted=p_adjusted, verdict=verdict)


@dataclass(frozen=True, slots=True)
class Side:
    """One run of a pair: its place among the runs, the run, and its answers along the axis."""

    index: int
    run: FinishedRun
    answers: Answers


class Pair:
    """A candidate and the baseline, task by task, to be summed over the draws and then judged."""

    def __init__(self, baseline: Side, candidate: Side, axis: Axis) -> None:
        import numpy as np

        self._baseline, self._candidate, self._axis = baseline, candidate, axis
        first, second = baseline.answers, candidate.answers
        self._accuracy = second.correct - first.correct
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(second.timed) - np.log(first.timed)
        self._latency = np.where(np.isfinite(logs), logs, np.nan)
        parts = {name: metric.pair_columns(first, second) for name, metric in METRICS.items()} | {
            LATENCY.name: mean_columns(self._latency)
        }
        # What has to be summed over the draws: shape (tasks, columns).
        self.columns = np.hstack(list(parts.values()))
        self._parts = columns_of(parts)

    def result(self, sums: Sums, runs: Sequence[FinishedRun]) -> PairResult:
        """The result; its p values are not adjusted yet.

        Args:
            sums: of the pair's columns.
            runs: all runs of the comparison.
        """
        first, second = self._baseline.answers, self._candidate.answers
        both = first.attempted & second.attempted
        parts = {
            name: replace(sums, drawn=sums.drawn[:, part]) for name, part in self._parts.items()
        }
        differences = [
            metric.difference(first, second, parts[name]) for name, metric in METRICS.items()
        ]
        distances = self._distances(both)
        known = [distance for distance in distances.values() if distance is not None]
        requested = self._baseline.run.manifest.counts.requested
        return PairResult(
            baseline=self._baseline.index,
            candidate=self._candidate.index,
            remarks=remarks(self._baseline.run, self._candidate.run),
            paired=int(both.sum()),
            coverage=float(both.sum()) / requested if requested else 0.0,
            clusters=sums.clusters(both),
            metrics=[difference for difference in differences if difference is not None],
            distance_mean=math.fsum(known) / len(known) if known else None,
            distance_max=max(known, default=None),
            flips=self._flips(distances),
            latency=_latency(
                mean_difference(LATENCY.name, self._latency, parts[LATENCY.name]),
                latency_warnings(runs, self._baseline.index, self._candidate.index),
            ),
        )

    def _distances(self, both: "NDArray[bool_]") -> dict[str, float | None]:
        distances: dict[str, float | None] = {}
        for place in both.nonzero()[0]:
            task_id = self._axis.ids[place]
            first = self._baseline.run.records[task_id].probs
            second = self._candidate.run.records[task_id].probs
            distances[task_id] = total_variation(first, second) if first and second else None
        return distances

    def _flips(self, distances: dict[str, float | None]) -> list[Flip]:
        """What the candidate lost, then what it gained, the largest change of mind first."""
        flips = []
        for place in (abs(self._accuracy) == 1).nonzero()[0]:
            task_id = self._axis.ids[place]
            flips.append(
                Flip(
                    task_id,
                    "baseline" if self._accuracy[place] < 0 else "candidate",
                    self._baseline.run.records[task_id].probs,
                    self._candidate.run.records[task_id].probs,
                    distances[task_id],
                )
            )
        return sorted(flips, key=lambda flip: (flip.right, -(flip.distance or 0.0), flip.task_id))


class Cell:
    """The accuracy of two runs of which neither is the baseline."""

    def __init__(self, first: Side, second: Side) -> None:
        self._first, self._second = first, second
        self.columns = ACCURACY.pair_columns(first.answers, second.answers)

    def result(self, sums: Sums) -> MatrixCell:
        """The cell; its p is not adjusted yet."""
        difference = ACCURACY.difference(self._first.answers, self._second.answers, sums)
        return MatrixCell(self._first.index, self._second.index, difference)


def _latency(logs: Difference | None, warnings: list[str]) -> LatencyRatio | None:
    if logs is None:
        return None
    interval, one_sided = (
        ends and Interval(*map(math.exp, ends)) for ends in (logs.interval, logs.equivalence)
    )
    return LatencyRatio(math.exp(logs.delta), interval, one_sided, logs.n, warnings)


def total_variation(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """Half the sum of absolute differences: 0 for equal distributions, 1 for disjoint ones.

    The largest difference between the probabilities that both give to one set of labels; Levin
    and Peres (2017), "Markov Chains and Mixing Times", proposition 4.2.
    """
    labels = first.keys() | second.keys()
    return math.fsum(abs(first.get(label, 0.0) - second.get(label, 0.0)) for label in labels) / 2
