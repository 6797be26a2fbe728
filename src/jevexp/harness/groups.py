"""The numbers of one group of tasks, gathered record by record.

Sums are exact and order makes no difference, so that eight bytes a record and number are kept and
nothing else.
"""

import math
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from jevexp.core.record import Record
from jevexp.core.summary import Calibration, CalibrationBin, GroupSummary, Latency
from jevexp.core.task import Kind
from jevexp.harness.scoring import expected_level

ECE_BINS = 10


class Group:
    """Counts and samples of a group of tasks; `planned` is counted from outside."""

    def __init__(self) -> None:
        self.planned = self.attempted = 0
        self._scorable = self._valid = self._strict = self._renormalized = self._ok = 0
        self._correct = 0
        self._briers, self._ordinal_errors = array("d"), array("d")
        self._latencies, self._failures, self._costs = array("d"), array("d"), array("d")
        self._cost_bases: set[str] = set()
        self._bins = [_Bin() for _ in range(ECE_BINS)]

    def add(self, record: Record, scored: "Scored | None", *, scorable: bool) -> None:
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
            self._bins[min(int(top * ECE_BINS), ECE_BINS - 1)].add(top, scored.correct)

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
        """Expected calibration error of the top label, over equal-width bins.

        Guo et al. (2017), "On Calibration of Modern Neural Networks", equation 3. The last bin
        includes 1. None for an empty sample.
        """
        n = len(self._briers)
        if not n:
            return None
        ece = 0.0
        bins = []
        for index, members in enumerate(self._bins):
            size = len(members.confidences)
            confidence = mean(members.confidences)
            accuracy = ratio(members.correct, size)
            if confidence is not None and accuracy is not None:
                ece += size / n * abs(confidence - accuracy)
            bins.append(
                CalibrationBin(
                    lo=index / ECE_BINS,
                    hi=(index + 1) / ECE_BINS,
                    n=size,
                    mean_confidence=confidence,
                    accuracy=accuracy,
                )
            )
        return Calibration(ece=ece, n=n, bins=bins)


class _Bin:
    """The members of one bin of confidences."""

    def __init__(self) -> None:
        self.confidences = array("d")
        self.correct = 0

    def add(self, confidence: float, correct: bool) -> None:
        self.confidences.append(confidence)
        self.correct += correct


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
    """A share; None of nothing."""
    return part / whole if whole else None


def mean(values: Sequence[float]) -> float | None:
    """The mean with an exact sum; None over nothing."""
    return math.fsum(values) / len(values) if values else None
