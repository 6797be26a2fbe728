"""Runs on the same tasks: each by itself, held against a baseline, and all against all."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from jevexp.analysis.answers import answers_of, axis_of
from jevexp.analysis.comparison import Comparison, MatrixCell, Mistake, PairResult, RunStatistics
from jevexp.analysis.metric import Metric, Options
from jevexp.analysis.pairs import Cell, Pair, Side
from jevexp.analysis.run_statistics import RunSample
from jevexp.analysis.runs import FinishedRun, check_comparable
from jevexp.analysis.statistics.holm import holm
from jevexp.analysis.statistics.resampling import Resampling
from jevexp.analysis.who import differing_settings, identity_fields, labels


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
    found = [
        Mistake(task_id, answer.predicted, max(answer.probs.values()), answer.probs)
        for task_id, answer in run.records.items()
        if answer.correct is False and answer.probs
        if run.tasks is None or run.tasks[task_id].scorable
    ]
    return sorted(found, key=lambda mistake: (-mistake.confidence, mistake.task_id))


def _compared(runs: Sequence[FinishedRun], options: Options) -> Comparison:
    axis = axis_of(runs)
    answers = [answers_of(run, axis) for run in runs]
    samples = [RunSample(run, one, axis, options) for run, one in zip(runs, answers, strict=True)]
    sides = [Side(*one) for one in zip(range(len(runs)), runs, answers, strict=True)]
    pairs = [Pair(sides[0], candidate, axis, options) for candidate in sides[1:]]
    others = [
        Cell(sides[a], sides[b], axis, options) for a, b in combinations(range(1, len(runs)), 2)
    ]
    # All at once: with many tasks one pass over the draws takes most of the time.
    resampling = Resampling(axis.members, draws=options.draws, seed=options.seed)
    columns = [sample.columns for sample in samples]
    columns += [pair.columns for pair in pairs]
    columns += [cell.columns for cell in others]
    drawn = resampling.sums(columns)
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
    tested = [metric for pair in pairs for metric in pair.metrics]
    tested += [cell.accuracy for cell in others if cell.accuracy]
    p_values = [metric.p for metric in tested if metric.p is not None]
    adjusted = iter(holm(p_values))

    def judge(metric: Metric) -> Metric:
        return metric if metric.p is None else metric.judged(next(adjusted), options)

    # In the order in which the p values were collected.
    pairs = [replace(pair, metrics=[judge(metric) for metric in pair.metrics]) for pair in pairs]
    others = [
        replace(cell, accuracy=judge(cell.accuracy)) if cell.accuracy else cell for cell in others
    ]
    against_first = [
        MatrixCell(pair.baseline, pair.candidate, pair.metric("accuracy")) for pair in pairs
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
