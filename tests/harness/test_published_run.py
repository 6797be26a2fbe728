"""A run that others published with the pinned harness, summarized again.

The files are not part of the project: they are looked for under $JEVEXP_SHARED, else in a folder
`shared` beside the checkout. published.json names families by numbers in the order accuracy,
Brier, ECE, p50, p95.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from jevexp.core.record import Record
from jevexp.core.task import Task
from tests.support.summaries import summarize

SHARED = Path(os.environ.get("JEVEXP_SHARED") or Path(__file__).parents[3] / "shared")
PUBLISHED = SHARED / "published"
# What was left out of the published records.
NEUTRAL = {"ts": 0.0, "usage": {}, "raw_sha256": "0" * 64, "runtime": None}

pytestmark = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason=f"no published run at {PUBLISHED}; set JEVEXP_SHARED"
)


def lines(name: str) -> list[str]:
    return (PUBLISHED / name).read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((PUBLISHED / "published.json").read_text())
    return found


@pytest.fixture(scope="module")
def summary() -> dict[str, Any]:
    tasks = [Task.model_validate_json(line) for line in lines("tasks.jsonl")]
    records = [Record(**NEUTRAL | json.loads(line)) for line in lines("results.jsonl")]
    return summarize(tasks, records)


def exactly(value: float) -> Any:
    return pytest.approx(value, rel=1e-12, abs=1e-12)


def test_the_published_numbers_come_out(summary: dict[str, Any], published: dict[str, Any]) -> None:
    ours = {
        "accuracy": summary["accuracy"],
        "brier_mean": summary["brier_mean"],
        "ece": summary["ece"]["ece"],
        "p50": summary["latency"]["p50_s"],
        "p95": summary["latency"]["p95_s"],
        "mae": summary["ordinal_mae"],
        "macro": summary["macro_accuracy"],
        "agree": summary["paraphrase_consistency"]["agree"],
        "both": summary["paraphrase_consistency"]["both_correct_rate_all_pairs"],
    }
    assert ours == {name: exactly(published[name]) for name in ours}
    assert set(published) == {*ours, "fam"}


def test_the_published_numbers_of_each_family_come_out(
    summary: dict[str, Any], published: dict[str, Any]
) -> None:
    ours = {
        name: [
            family["accuracy"],
            family["brier_mean"],
            family["ece"]["ece"],
            family["latency"]["p50_s"],
            family["latency"]["p95_s"],
        ]
        for name, family in summary["per_family"].items()
    }
    assert ours == {
        name: [exactly(value) for value in values] for name, values in published["fam"].items()
    }


def test_all_72_tasks_were_attempted_and_valid(summary: dict[str, Any]) -> None:
    assert summary["complete"] is True
    assert summary["n_planned"] == summary["n_attempted"] == summary["n_valid"] == 72
    assert summary["paraphrase_consistency"]["pairs"] == 36
