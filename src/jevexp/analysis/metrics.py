"""The metrics: everything that the program says about one stands in its entry here.

A metric's name is its key in a run's summary, and its name in JSON, CSV, options and MLflow. To add
a metric, add an entry to `METRICS`: tables, JSON, CSV, plots, pages and gates follow.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jevexp.analysis.estimates import (
    Difference,
    Estimate,
    Sums,
    calibration_error,
    gap_columns,
    known,
    mean_columns,
    mean_difference,
    ratio,
    share_difference,
    share_right,
)
from jevexp.analysis.intervals import percentile_interval
from jevexp.analysis.runs import Answers
from jevexp.core.record import GroupSummary
from jevexp.core.task import Kind
from jevexp.harness.summary import Scored, brier, ordinal_error

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number of a run as a person reads it; `unit` says what its axis shows.

    A `share` is drawn on an axis from 0 to 1.
    """

    name: str
    title: str
    unit: str
    higher_is_better: bool
    share: bool = False

    @property
    def better(self) -> str:
        """Which way it is read."""
        return "higher is better" if self.higher_is_better else "lower is better"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric(Quantity):
    """A number that runs are compared in: by default the mean of a value that each task has.

    It says which columns of a run, or of two, have to be summed over the bootstrap's draws, and
    what those sums come to; all columns of a comparison are summed together.

    `heading` is its short name, of a column. `untested` says why no verdict is given on it; None
    for a metric with a test, which gates may limit. `of_task` is its value for a valid distribution
    on a task with a truth, NaN for a task that does not count; None for a metric that takes the
    records alone, and not the tasks.
    """

    heading: str
    untested: str | None = None
    of_task: Callable[[Scored], float] | None = None

    @property
    def columns(self) -> Sequence[str]:
        """The columns of its estimate in tables."""
        return (self.name, *(f"{self.name}_{part}" for part in ("low", "high", "n", "clusters")))

    def of_summary(self, summary: GroupSummary) -> float | None:
        """What a summary, or one family's part of it, says; None where it does not know."""
        return summary.number(self.name) if hasattr(summary, self.name) else None

    def values(self, answers: Answers) -> "NDArray[float64]":
        """The value of each task, NaN for one that has none: shape (tasks,)."""
        return answers.values[self.name]

    def sampled(self, *sides: Answers) -> "NDArray[float64]":
        """What has to be summed for one run, or for two: shape (tasks, columns)."""
        first, *others = map(self.values, sides)
        return mean_columns(others[0] - first if others else first)

    def estimate(self, answers: Answers, sums: Sums) -> Estimate | None:
        """The metric of one run with its interval; None where no task has a value."""
        values = self.values(answers)
        present = known(values)
        if not present.any():
            return None
        clusters = sums.clusters(present)
        interval = percentile_interval(ratio(sums.drawn), clusters=clusters, level=sums.level)
        return Estimate(float(values[present].mean()), interval, int(present.sum()), clusters)

    def difference(self, baseline: Answers, candidate: Answers, sums: Sums) -> Difference | None:
        """The candidate's minus the baseline's; None where no task has a value on both sides."""
        return mean_difference(self.name, self.values(candidate) - self.values(baseline), sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareRight(Metric):
    """The share of right answers; a failed attempt is wrong."""

    def values(self, answers: Answers) -> "NDArray[float64]":
        """1 for a right answer, 0 for a wrong one."""
        return answers.correct

    def estimate(self, answers: Answers, sums: Sums) -> Estimate | None:
        """See `share_right`."""
        return share_right(answers, known(answers.correct), sums)

    def difference(self, baseline: Answers, candidate: Answers, sums: Sums) -> Difference | None:
        """See `share_difference`."""
        return share_difference(self.name, candidate.correct - baseline.correct, sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationError(Metric):
    """Expected calibration error as sums over tasks, so that it can be resampled.

    It gets no test: an absolute value a bin makes it no mean over tasks, and biased upwards in a
    small sample, also in a resampled one.
    """

    def sampled(self, *sides: Answers) -> "NDArray[float64]":
        """The gaps of each side in the columns of its bins, and the count."""
        return gap_columns(*sides)

    def estimate(self, answers: Answers, sums: Sums) -> Estimate | None:
        """The error with its bootstrap interval."""
        return calibration_error(answers, sums=sums)

    def difference(self, baseline: Answers, candidate: Answers, sums: Sums) -> Difference | None:
        """The difference with a bootstrap interval and no test."""
        if (error := calibration_error(baseline, candidate, sums=sums)) is None:
            return None
        return Difference(self.name, error.value, error.n, error.clusters, error.interval)


# What runs are ranked by, and what every two runs are compared in.
ACCURACY = ShareRight(
    name="accuracy",
    title="Accuracy",
    heading="accuracy",
    unit="share of tasks right",
    higher_is_better=True,
    share=True,
)
CALIBRATION = CalibrationError(
    name="ece",
    title="Calibration error (ECE)",
    heading="ECE",
    unit="confidence away from accuracy",
    higher_is_better=False,
    untested="this error is too large in small samples, and a test of it would claim more than is "
    "known",
)
# In the order of tables and pages.
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        ACCURACY,
        Metric(
            name="brier_mean",
            title="Brier score",
            heading="Brier",
            unit="0 is perfect, 2 the worst",
            higher_is_better=False,
            of_task=brier,
        ),
        CALIBRATION,
        Metric(
            name="ordinal_mae",
            title="Level error (MAE)",
            heading="MAE",
            unit="levels away from the right one",
            higher_is_better=False,
            of_task=lambda task: ordinal_error(task) if task.kind is Kind.SCORE else math.nan,
        ),
    )
}

LATENCY = Quantity(
    name="latency", title="Latency", unit="seconds a task, the median", higher_is_better=False
)
PARAPHRASES = Quantity(
    name="paraphrases",
    title="Paraphrases alike",
    unit="share of pairs with one answer",
    higher_is_better=True,
    share=True,
)


def with_verdicts() -> list[Metric]:
    """The metrics that verdicts are given on."""
    return [metric for metric in METRICS.values() if metric.untested is None]


def values_of_tasks() -> dict[str, Callable[[Scored], float]]:
    """By metric, the value that each task has."""
    return {name: metric.of_task for name, metric in METRICS.items() if metric.of_task}
