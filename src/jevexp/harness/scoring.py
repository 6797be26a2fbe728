"""Whether a decision is valid, what it predicts and whether that is right."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jevexp.core.decision import Decision, ProbsSource
from jevexp.core.json import shown
from jevexp.core.task import Kind, Task

# How far a distribution's sum may be from 1: to pass as it is, and to be rescaled.
STRICT_TOLERANCE = 1e-3
RESCALE_TOLERANCE = 2e-2


@dataclass(frozen=True)
class Score:
    """What a decision comes to; the fields are those of the record."""

    valid: bool = False
    strict_valid: bool = False
    renormalized: bool = False
    probs: dict[str, float] | None = None
    predicted: str | None = None
    correct: bool | None = None
    ordinal_ev: float | None = None
    schema_error: str | None = None


def score(task: Task, decision: Decision) -> Score:
    """Score one decision.

    A failed attempt and an invalid distribution are wrong, as in the pinned harness also where the
    task has no truth. There, a valid distribution and any answer that is only a label are neither
    right nor wrong.
    """
    if not decision.ok:
        return Score(correct=False)
    if decision.probs_source == ProbsSource.LABEL_ONLY:
        return _score_label(task, decision.label)
    return _score_distribution(task, decision.probs)


def said_null_before(task: Task, scored: Score, correct: bool | None) -> bool:
    """Whether `correct` is what earlier versions of jevexp recorded for this score.

    Where a task has no truth, they said null of failed attempts and of invalid distributions too.
    """
    return task.gold is None and scored.correct is False and correct is None


def _score_label(task: Task, label: str | None) -> Score:
    wrong = None if task.gold is None else False
    if label is None:
        return Score(correct=wrong, schema_error="abstained")
    if label not in task.labels:
        return Score(correct=wrong, schema_error="label outside the label set")
    return Score(
        valid=True,
        strict_valid=True,
        predicted=label,
        correct=None if task.gold is None else label == task.gold,
    )


def _score_distribution(task: Task, returned: Mapping[str, Any] | None) -> Score:
    probs = returned or {}
    if fault := _value_fault(task.labels, probs):
        return Score(correct=False, schema_error=fault)
    # The exact sum: the same for every order of the labels and on every version of Python.
    total = math.fsum(probs.values())
    strict = abs(total - 1) <= STRICT_TOLERANCE
    if not strict and not (abs(total - 1) <= RESCALE_TOLERANCE and total > 0):
        fault = f"probs sum to {round(total, 12)}, tolerance {STRICT_TOLERANCE}"
        return Score(correct=False, schema_error=fault)
    shares = {label: p if strict else p / total for label, p in probs.items()}
    predicted = argmax(shares)
    is_score = task.kind is Kind.SCORE
    return Score(
        valid=True,
        strict_valid=strict,
        renormalized=not strict,
        probs=shares,
        # The benchmark predicts no level for a score task without a truth.
        predicted=None if is_score and task.gold is None else predicted,
        correct=None if task.gold is None else predicted == task.gold,
        ordinal_ev=expected_level(shares) if is_score else None,
    )


def _value_fault(labels: Sequence[str], probs: Mapping[str, Any]) -> str | None:
    """Why these keys and values are no distribution over `labels`; None when they are."""
    if set(probs) != set(labels):
        missing = sorted(set(labels) - set(probs))
        # A provider in this process may use keys that are no text.
        extra = sorted(set(probs) - set(labels), key=str)
        return f"label keys mismatch: missing={missing} extra={extra}"
    for label, p in probs.items():
        if isinstance(p, bool) or not isinstance(p, int | float):
            return f"prob[{label!r}] is not a number: {shown(p)}"
        # False for NaN as well.
        if not 0 <= p <= 1:
            return f"prob[{label!r}] out of [0,1]: {shown(p)}"
    return None


def argmax(probs: Mapping[str, float]) -> str:
    """The most likely label; of equally likely ones the lexicographically smallest."""
    return min(probs, key=lambda label: (-probs[label], label))


def expected_level(probs: Mapping[str, float]) -> float:
    """Expected level of a score distribution: the sum of level times probability."""
    return math.fsum(int(level) * p for level, p in probs.items())
