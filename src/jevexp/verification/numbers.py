"""Accuracy, Brier score and calibration by other formulas than the summary's."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.store.directory import SUMMARY
from jevexp.verification.check import Check
from jevexp.verification.differences import same

_BINS = 10


def check_numbers(
    tasks: Iterable[Task],
    records: Mapping[str, Record],
    summary: Mapping[str, Any],
    check: Check,
) -> None:
    """Hold the summary's headline numbers against what other formulas make of the records.

    All of them are exact here, in fractions, where the summary's are sums of floats:

    - accuracy from the distributions: a task counts where no other label has more than the right
      one, nor as much and an earlier name;
    - Brier: Σ (p - y)² = Σ p² - 2·p[right] + 1, since Σ y² = 1 and only one y is not 0;
    - ECE: 1/n · Σ over the bins of |Σ confidence - Σ correct|, the bins' sizes having cancelled.
    """
    scored, labels, attempted = _scored(tasks, records)
    right = [_is_right(probs, gold) for probs, gold in scored]
    numbers = {
        "accuracy": _share(sum(right) + labels, attempted),
        "brier_mean": _share(sum(_brier(probs, gold) for probs, gold in scored), len(scored)),
        "ece": _ece([probs for probs, _ in scored], right),
    }
    for name, value in numbers.items():
        check.count += 1
        with check.guarded(SUMMARY):
            stored = summary[name]
            stored = stored["ece"] if name == "ece" and stored is not None else stored
            if not same(stored, None if value is None else float(value)):
                found = None if value is None else float(value)
                check.fail(SUMMARY, f"{name}: {stored!r}, by another formula {found!r}")


def _scored(
    tasks: Iterable[Task], records: Mapping[str, Record]
) -> tuple[list[tuple[dict[str, float], str]], int, int]:
    """Distributions with the right label, right answers without a distribution, and attempts."""
    scored = []
    labels = attempted = 0
    for task in tasks:
        record = records.get(task.id)
        if record is None or not task.scorable or task.gold is None:
            continue
        attempted += 1
        if record.probs is not None:
            scored.append((record.probs, task.gold))
        elif record.correct:
            labels += 1
    return scored, labels, attempted


def _is_right(probs: Mapping[str, float], gold: str) -> bool:
    return not any(
        p > probs[gold] or (p == probs[gold] and label < gold) for label, p in probs.items()
    )


def _brier(probs: Mapping[str, float], gold: str) -> Fraction:
    squares = sum((Fraction(p) ** 2 for p in probs.values()), Fraction(0))
    return squares - 2 * Fraction(probs[gold]) + 1


def _ece(distributions: Sequence[Mapping[str, float]], right: Sequence[bool]) -> Fraction | None:
    gaps = [Fraction(0)] * _BINS
    for probs, correct in zip(distributions, right, strict=True):
        top = max(probs.values())
        gaps[min(int(top * _BINS), _BINS - 1)] += Fraction(top) - correct
    return _share(sum(map(abs, gaps), Fraction(0)), len(right))


def _share(whole: Fraction | int, count: int) -> Fraction | None:
    return Fraction(whole) / count if count else None
