"""A candidate held against the baseline, task by task."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jevexp.analysis.answers import Answers, Axis
from jevexp.analysis.calibration import error_of, gap_columns
from jevexp.analysis.comparison import Flip, LatencyRatio, MatrixCell, PairResult
from jevexp.analysis.conditions import latency_warnings, remarks
from jevexp.analysis.metric import (
    Metric,
    Options,
    accuracy_difference,
    mean_columns,
    mean_difference,
)
from jevexp.analysis.runs import FinishedRun
from jevexp.analysis.statistics.distance import total_variation
from jevexp.analysis.statistics.interval import Interval
from jevexp.analysis.statistics.resampling import percentile_interval
from jevexp.harness.groups import ECE_BINS

if TYPE_CHECKING:
    from numpy import bool_, float64, intp
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Side:
    """One run of a pair: its place among the runs, the run, and its answers along the axis."""

    index: int
    run: FinishedRun
    answers: Answers


class Pair:
    """The differences of two runs, to be summed over the draws and then judged."""

    def __init__(self, baseline: Side, candidate: Side, axis: Axis, options: Options) -> None:
        import numpy as np

        self._baseline, self._candidate = baseline, candidate
        self._axis, self._options = axis, options
        first, second = baseline.answers, candidate.answers
        self._accuracy = second.correct - first.correct
        self._brier = second.brier - first.brier
        self._level_error = second.level_error - first.level_error
        self._calibrated = ~np.isnan(first.confidence) & ~np.isnan(second.confidence)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(second.timed) - np.log(first.timed)
        self._latency = np.where(np.isfinite(logs), logs, np.nan)

    @property
    def columns(self) -> "NDArray[float64]":
        """What has to be summed over the draws: shape (tasks, 29)."""
        import numpy as np

        return np.hstack(
            [
                *map(
                    mean_columns,
                    (self._accuracy, self._brier, self._level_error, self._latency),
                ),
                gap_columns(self._baseline.answers, self._calibrated),
                gap_columns(self._candidate.answers, self._calibrated),
                self._calibrated[:, np.newaxis],
            ]
        )

    def result(self, sums: "NDArray[float64]", runs: Sequence[FinishedRun]) -> PairResult:
        """The result; its p values are not adjusted yet.

        Args:
            sums: shape (draws, 29), the sums of the columns over each draw.
            runs: all runs of the comparison.
        """
        members, options = self._axis.members, self._options
        both = self._baseline.answers.attempted & self._candidate.answers.attempted
        metrics = [
            accuracy_difference(self._accuracy, members, sums[:, 0:2], options),
            mean_difference("brier", self._brier, members, sums[:, 2:4], options),
            self._calibration(sums[:, 8:]),
            mean_difference("mae", self._level_error, members, sums[:, 4:6], options),
        ]
        distances = self._distances(both)
        values = [value for value in distances.values() if value is not None]
        requested = self._baseline.run.manifest.counts.requested
        return PairResult(
            baseline=self._baseline.index,
            candidate=self._candidate.index,
            remarks=remarks(self._baseline.run, self._candidate.run),
            paired=int(both.sum()),
            coverage=float(both.sum()) / requested if requested else 0.0,
            clusters=_count(members, both),
            metrics=[metric for metric in metrics if metric is not None],
            distance_mean=math.fsum(values) / len(values) if values else None,
            distance_max=max(values, default=None),
            flips=self._flips(distances),
            latency=_latency(
                mean_difference("latency", self._latency, members, sums[:, 6:8], options),
                latency_warnings(runs, self._baseline.index, self._candidate.index),
            ),
        )

    def _calibration(self, sums: "NDArray[float64]") -> Metric | None:
        """The difference in expected calibration error, with a bootstrap interval and no test.

        An absolute value a bin makes the error no mean over tasks, and biased upwards in a small
        sample, also in a resampled one. A verdict on it would claim more than is known.
        """
        import numpy as np

        n = int(self._calibrated.sum())
        if not n:
            return None
        sides = (self._baseline.answers, self._candidate.answers)
        gaps = [gap_columns(answers, self._calibrated).sum(axis=0) for answers in sides]
        # The sample itself as one more row: one formula for the estimate and its draws.
        rows = np.vstack([[*gaps[0], *gaps[1], n], sums])
        counts = np.where(rows[:, -1] > 0, rows[:, -1], np.nan)
        values = error_of(rows[:, ECE_BINS:-1], counts) - error_of(rows[:, :ECE_BINS], counts)
        clusters = _count(self._axis.members, self._calibrated)
        interval = percentile_interval(values[1:], clusters=clusters, level=1 - self._options.alpha)
        return Metric("ece", float(values[0]), n, clusters, interval)

    def _distances(self, both: "NDArray[bool_]") -> dict[str, float | None]:
        found: dict[str, float | None] = {}
        for place in both.nonzero()[0]:
            task_id = self._axis.ids[place]
            first = self._baseline.run.records[task_id].probs
            second = self._candidate.run.records[task_id].probs
            found[task_id] = total_variation(first, second) if first and second else None
        return found

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

    def __init__(self, first: Side, second: Side, axis: Axis, options: Options) -> None:
        self._first, self._second = first.index, second.index
        self._members, self._options = axis.members, options
        self._accuracy = second.answers.correct - first.answers.correct

    @property
    def columns(self) -> "NDArray[float64]":
        """What has to be summed over the draws: shape (tasks, 2)."""
        return mean_columns(self._accuracy)

    def result(self, sums: "NDArray[float64]") -> MatrixCell:
        """The cell, from the sums of the columns over each draw; its p is not adjusted yet."""
        found = accuracy_difference(self._accuracy, self._members, sums, self._options)
        return MatrixCell(self._first, self._second, found)


def _latency(logs: Metric | None, warnings: list[str]) -> LatencyRatio | None:
    if logs is None:
        return None
    interval, one_sided = (
        found and Interval(*map(math.exp, found)) for found in (logs.interval, logs.equivalence)
    )
    return LatencyRatio(math.exp(logs.delta), interval, one_sided, logs.n, warnings)


def _count(members: "NDArray[intp]", used: "NDArray[bool_]") -> int:
    return len(set(members[used].tolist()))
