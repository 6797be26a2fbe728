"""What each check of a run looked at, and the headline numbers by hand."""

from pathlib import Path
from typing import Any

import pytest

from jevexp.verification import verify_run
from jevexp.verification.check import Check
from jevexp.verification.manifest import _check_numbers
from jevexp.verification.receipt import make_receipt
from tests.support.runs import noul_tasks, record


def test_every_check_counts_what_it_looked_at(noisy: Path) -> None:
    report = verify_run(noisy)
    counts = {check.name: check.count for check in report.checks}
    a_task = ("attempts", "raw files", "requests", "answers", "scores", "costs")
    assert {name: counts[name] for name in a_task} == dict.fromkeys(a_task, 12)
    # One cap, two rows a task, the sum of all; the planned end and the one after each task.
    assert (counts["ledger"], counts["stop"], counts["numbers"]) == (26, 13, 3)
    # 12 raw answers and what lies beside them.
    assert counts["files"] == sum(path.is_file() for path in noisy.rglob("*")) - 1
    assert all((check.reason, check.notes) == (None, []) for check in report.checks)


def test_a_receipt_says_exactly_this(noisy: Path) -> None:
    def names(value: Any) -> Any:
        return {name: names(part) for name, part in value.items()} if isinstance(value, dict) else 0

    expected: dict[str, Any] = dict.fromkeys(
        ["receipt", "run", "status", "stop_reason", "config_sha256", "fingerprint", "identity",
         "model", "backend", "charged_usd"]
    )  # fmt: skip
    groups = {
        "files": "checksums.sha256 manifest.json results.jsonl summary.json ledger.jsonl",
        "raw": "files sha256",
        "dataset": "name dataset_hash n_tasks",
        "counts": "requested attempted answered valid",
        "numbers": "n_planned n_attempted n_scorable n_correct accuracy macro_accuracy brier_mean "
        "ordinal_mae ece",
        "versions": "manifest harness jevexp git_commit python",
    }
    expected |= {group: dict.fromkeys(fields.split()) for group, fields in groups.items()}
    expected["versions"]["harness"] = {"name": 0, "commit": 0}
    receipt = make_receipt(noisy)
    assert names(receipt) == names(expected)
    assert (receipt["receipt"], receipt["status"], receipt["backend"]) == (1, "complete", "fake")
    assert (receipt["dataset"]["name"], receipt["raw"]["files"]) == ("demo", 12)
    assert receipt["counts"] == dict.fromkeys(("requested", "attempted", "answered", "valid"), 12)
    assert None not in receipt["files"].values()


TASKS = noul_tasks(7)
RIGHT: dict[str, Any] = {
    "accuracy": 3 / 6,
    # Two labels, so that each answer adds twice the square of what its right one lacks.
    "brier_mean": 2 * (0.25**2 + 0.8**2 + 0.5**2 + 0.75**2) / 5,
    # 0.75 of a right and of a wrong answer are in one bin, 0.8 and 0.5 of wrong ones in others.
    "ece": {"ece": ((0.75 + 0.75 - 1) + 0.8 + 0.5) / 5},
}


def numbers(summary: dict[str, Any]) -> Check:
    """Yes is right: shares of five answers, one without any that is right, one missing.

    Of a tie the name that comes first is what was answered, which is no.
    """
    records = {
        task.id: record(task, probs={"yes": share, "no": 1 - share})
        for task, share in zip(TASKS, (0.75, 0.2, 0.5, 0.25, 1.0), strict=False)
    }
    records[TASKS[5].id] = record(TASKS[5], probs=None, correct=True)
    check = Check("numbers", "")
    _check_numbers(TASKS, records, summary, check)
    return check


def test_headline_numbers_by_hand() -> None:
    right = numbers(RIGHT)
    assert (right.count, right.failures) == (3, [])
    for name in RIGHT:
        wrong = numbers(RIGHT | {name: {"ece": 0.25} if name == "ece" else 0.25})
        assert wrong.failures[0].message.startswith(f"{name}: ")
        assert wrong.failed == 1


@pytest.mark.parametrize("ece", [None, {"ece": None}])
def test_no_answer_has_no_headline_numbers(ece: Any) -> None:
    check = Check("numbers", "")
    summary = {"accuracy": None, "brier_mean": None, "ece": ece}
    _check_numbers(TASKS, {}, summary, check)
    assert (check.count, check.failed) == (3, 0)
    _check_numbers(TASKS, {}, summary | {"accuracy": 0.0}, check)
    assert (check.count, check.failed) == (6, 1)
