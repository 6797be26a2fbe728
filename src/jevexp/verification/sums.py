"""What the records come to, computed again and held against the summary."""

from pathlib import Path
from typing import Any

from jevexp.core.json import loads
from jevexp.errors import InputError
from jevexp.harness import make_harness, summarize
from jevexp.settings import Harness
from jevexp.store.directory import SUMMARY
from jevexp.untrusted.files import read_document
from jevexp.verification.check import Check
from jevexp.verification.differences import differences
from jevexp.verification.numbers import check_numbers
from jevexp.verification.records import RecordPass
from jevexp.verification.subject import Subject

_NUMBERS = "accuracy, Brier and ECE by independent formulas, in exact fractions"


def check_sums(subject: Subject, looked: RecordPass) -> list[Check]:
    """The summary as a whole, and its headline numbers by other formulas."""
    summary = Check("summary", "every number of the summary, computed again from the records")
    numbers = Check("numbers", _NUMBERS)
    checks = [summary, numbers]
    if SUMMARY not in subject.tree.files:
        for check in checks:
            check.skip(f"there is no {SUMMARY}")
        return checks
    stored = read_summary(subject.root, summary)
    if subject.tasks is None or stored is None:
        for check in checks:
            check.skip("tasks are not here" if stored else "the summary cannot be read")
        return checks
    with summary.guarded(SUMMARY):
        computed = _summarize(subject, looked, summary)
        summary.count += _leaves(computed)
        for line in differences(stored, computed):
            summary.fail(SUMMARY, line)
    with numbers.guarded(SUMMARY):
        check_numbers(subject.tasks, looked.records, stored, numbers)
    return checks


def read_summary(root: Path, check: Check) -> dict[str, Any] | None:
    """The summary; a failure of `check` and null where it is none."""
    with check.guarded(SUMMARY):
        stored = loads(read_document(root / SUMMARY, follow_links=False))
        if isinstance(stored, dict):
            return stored
        check.fail(SUMMARY, "is no object")
    return None


def _summarize(subject: Subject, looked: RecordPass, check: Check) -> dict[str, Any]:
    """By the run's own harness where it is here; the numbers are those of ours."""
    charged = subject.manifest.ledger.charged_usd
    tasks, records = subject.tasks or (), looked.records.values()
    if subject.upstream:
        try:
            harness = make_harness(Harness(name="upstream", path=None))
            return harness.summarize(tasks, records, ledger_charged_usd=charged)
        except InputError:
            check.notes.append("the pinned harness is not here; computed with ours")
    return summarize(tasks, records, ledger_charged_usd=charged)


def _leaves(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_leaves, value.values()))
    return sum(map(_leaves, value)) if isinstance(value, list) else 1
