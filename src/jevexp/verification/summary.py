"""The summary, computed again from the records: every number, and the headline ones exactly."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from jevexp.core.json import loads
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.harness import make_harness, summarize
from jevexp.settings import Harness
from jevexp.store.directory import SUMMARY
from jevexp.untrusted.files import read_document
from jevexp.verification.check import Check, differences, same
from jevexp.verification.context import VerificationContext
from jevexp.verification.records import RecordPass

_NUMBERS = "accuracy, Brier and ECE by independent formulas, in exact fractions"


def check_sums(context: VerificationContext, looked: RecordPass) -> list[Check]:
    """The summary as a whole, and its headline numbers by other formulas."""
    summary = Check("summary", "every number of the summary, computed again from the records")
    numbers = Check("numbers", _NUMBERS)
    checks = [summary, numbers]
    if SUMMARY not in context.tree.files:
        for check in checks:
            check.skip(f"there is no {SUMMARY}")
        return checks
    stored = read_summary(context.root, summary)
    if context.tasks is None or stored is None:
        for check in checks:
            check.skip("tasks are not here" if stored else "the summary cannot be read")
        return checks
    with summary.guarded(SUMMARY):
        computed = _summarize(context, looked, summary)
        summary.count += _leaves(computed)
        for line in differences(stored, computed):
            summary.fail(SUMMARY, line)
    with numbers.guarded(SUMMARY):
        check_numbers(context.tasks, looked.records, stored, numbers)
    return checks


def read_summary(root: Path, check: Check) -> dict[str, Any] | None:
    """The summary; a failure of `check` and null where it is none."""
    with check.guarded(SUMMARY):
        stored = loads(read_document(root / SUMMARY, follow_links=False))
        if isinstance(stored, dict):
            return stored
        check.fail(SUMMARY, "is no object")
    return None


def _summarize(context: VerificationContext, looked: RecordPass, check: Check) -> dict[str, Any]:
    """By the run's own harness where it is here; the numbers are those of ours."""
    charged = context.manifest.ledger.charged_usd
    tasks, records = context.tasks or (), looked.records.values()
    if context.upstream:
        try:
            harness = make_harness(Harness(name="upstream", path=None))
            return harness.summarize(tasks, records, ledger_charged_usd=charged).plain()
        except InputError:
            check.notes.append("the pinned harness is not here; computed with ours")
    return summarize(tasks, records, ledger_charged_usd=charged).plain()


def _leaves(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_leaves, value.values()))
    return sum(map(_leaves, value)) if isinstance(value, list) else 1


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
