"""Runs on the same tasks: each by itself, held against a baseline, and all against all."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from jevexp.analysis.comparison import (
    Comparison,
    Flip,
    LatencyRatio,
    MatrixCell,
    Mistake,
    PairResult,
)
from jevexp.analysis.conditions import (
    differing_settings,
    identity_fields,
    labels,
    latency_warnings,
    remarks,
)
from jevexp.analysis.estimates import (
    Difference,
    Options,
    Sums,
    mean_columns,
    mean_difference,
    side_by_side,
)
from jevexp.analysis.intervals import Interval, Resampling
from jevexp.analysis.metrics import ACCURACY, LATENCY, METRICS, values_of_tasks
from jevexp.analysis.run_statistics import RunSample
from jevexp.analysis.runs import Axis, FinishedRun, answers_of, axis_of, check_comparable
from jevexp.analysis.verdicts import decide, holm

Probs = dict[str, float] | None


def compare(runs: Sequence[FinishedRun], options: Options) -> Comparison:
    """Compare runs; the first one is the baseline.

    All p values of the comparison are adjusted together: those of every metric of every pair with
    the baseline, and those of the accuracy of all other pairs.

    Raises InputError: fewer than two runs, or they were not put the same tasks.
    """
    check_comparable(runs)
    return _compared(runs, options)


def describe(run: FinishedRun, options: Options) -> Comparison:
    """One run by itself, in the same form: no pairs, no tests, but its wrong answers.

    Those that have a distribution, the surest first.
    """
    mistakes = [
        Mistake(task_id, answer.predicted, max(answer.probs.values()), answer.probs)
        for task_id, answer in run.records.items()
        if answer.correct is False and answer.probs
        if run.tasks is None or run.tasks[task_id].scorable
    ]
    mistakes.sort(key=lambda mistake: (-mistake.confidence, mistake.task_id))
    return replace(_compared([run], options), mistakes=mistakes)


def _compared(runs: Sequence[FinishedRun], options: Options) -> Comparison:
    axis = axis_of(runs)
    values = values_of_tasks()
    samples = [
        RunSample(index, run, answers_of(run, axis, values), axis) for index, run in enumerate(runs)
    ]
    pairs = [Pair(samples[0], candidate, axis) for candidate in samples[1:]]
    others = list(combinations(samples[1:], 2))
    # All at once: with many tasks one pass over the draws takes most of the time.
    resampling = Resampling(axis.members, draws=options.draws, seed=options.seed)
    columns = [sample.columns for sample in samples] + [pair.columns for pair in pairs]
    columns += [ACCURACY.sampled(first.answers, second.answers) for first, second in others]
    drawn = (Sums(sums, axis.members, options) for sums in resampling.sums(columns))
    statistics = [
        sample.statistics(next(drawn), label, settings, fields)
        for sample, label, settings, fields in zip(
            samples, labels(runs), differing_settings(runs), identity_fields(runs), strict=True
        )
    ]
    results = [pair.result(next(drawn), runs) for pair in pairs]
    cells = [
        MatrixCell(
            first.index,
            second.index,
            ACCURACY.difference(first.answers, second.answers, next(drawn)),
        )
        for first, second in others
    ]
    # Every p value of the command is adjusted together, in one order.
    differences = [difference for result in results for difference in result.metrics]
    differences += [cell.accuracy for cell in cells if cell.accuracy]
    p_values = [difference.p for difference in differences if difference.p is not None]
    adjusted = iter(holm(p_values))

    def judge(difference: Difference) -> Difference:
        return difference if difference.p is None else judged(difference, next(adjusted), options)

    results = [replace(result, metrics=list(map(judge, result.metrics))) for result in results]
    against_first = [
        MatrixCell(result.baseline, result.candidate, result.difference(ACCURACY))
        for result in results
    ]
    cells = [replace(cell, accuracy=cell.accuracy and judge(cell.accuracy)) for cell in cells]
    dataset = runs[0].manifest.dataset
    return Comparison(
        options=options,
        dataset=dataset.name,
        dataset_hash=dataset.dataset_hash,
        tests=len(p_values),
        runs=statistics,
        pairs=results,
        matrix=against_first + cells,
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


class Pair:
    """A candidate and the baseline, task by task, to be summed over the draws and then judged."""

    def __init__(self, baseline: RunSample, candidate: RunSample, axis: Axis) -> None:
        import numpy as np

        self._baseline, self._candidate, self._axis = baseline, candidate, axis
        first, second = baseline.answers, candidate.answers
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(second.timed) - np.log(first.timed)
        self._latency = np.where(np.isfinite(logs), logs, np.nan)
        parts = {name: metric.sampled(first, second) for name, metric in METRICS.items()}
        # What has to be summed over the draws: shape (tasks, columns).
        self.columns, self._places = side_by_side(
            parts | {LATENCY.name: mean_columns(self._latency)}
        )

    def result(self, sums: Sums, runs: Sequence[FinishedRun]) -> PairResult:
        """The result, without adjusted p values; `sums` are of its columns, `runs` are all."""
        first, second = self._baseline.answers, self._candidate.answers
        both = first.attempted & second.attempted
        differences = [
            metric.difference(first, second, sums.of(self._places[name]))
            for name, metric in METRICS.items()
        ]
        distances = {}
        for place in both.nonzero()[0].tolist():
            task_id, before, after = self._probs(place)
            distances[task_id] = total_variation(before, after) if before and after else None
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
            latency=self._ratio(sums.of(self._places[LATENCY.name]), runs),
        )

    def _flips(self, distances: Mapping[str, float | None]) -> list[Flip]:
        """What the candidate lost, then what it gained, the largest change of mind first."""
        gained = self._candidate.answers.correct - self._baseline.answers.correct
        flips = []
        for place in (abs(gained) == 1).nonzero()[0].tolist():
            task_id, before, after = self._probs(place)
            right = "baseline" if gained[place] < 0 else "candidate"
            flips.append(Flip(task_id, right, before, after, distances[task_id]))
        return sorted(flips, key=lambda flip: (flip.right, -(flip.distance or 0.0), flip.task_id))

    def _probs(self, place: int) -> tuple[str, Probs, Probs]:
        task_id = self._axis.ids[place]
        records, others = self._baseline.run.records, self._candidate.run.records
        return task_id, records[task_id].probs, others[task_id].probs

    def _ratio(self, sums: Sums, runs: Sequence[FinishedRun]) -> LatencyRatio | None:
        if (logs := mean_difference(LATENCY.name, self._latency, sums)) is None:
            return None
        interval, one_sided = (
            ends and Interval(*map(math.exp, ends)) for ends in (logs.interval, logs.equivalence)
        )
        warnings = latency_warnings(runs, self._baseline.index, self._candidate.index)
        return LatencyRatio(math.exp(logs.delta), interval, one_sided, logs.n, warnings)


def total_variation(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """Half the sum of absolute differences: 0 for equal distributions, 1 for disjoint ones.

    The largest difference between the probabilities that both give to one set of labels; Levin
    and Peres (2017), "Markov Chains and Mixing Times", proposition 4.2.
    """
    labels = first.keys() | second.keys()
    return math.fsum(abs(first.get(label, 0.0) - second.get(label, 0.0)) for label in labels) / 2
