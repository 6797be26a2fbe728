"""An answer that is taken over is scored again, and every part of its score has to agree."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from jevexp.errors import InputError
from jevexp.run.resuming import _check_answer
from jevexp.store.records import AdoptedAnswer
from tests.support.runs import noul_tasks, record

TASK = noul_tasks(1)[0]
# What earlier versions recorded of a distribution that is none, where the task has no truth.
TRUTHLESS = TASK.model_copy(update={"expected": None})
INVALID: dict[str, Any] = {
    "valid": False,
    "strict_valid": False,
    "probs": None,
    "probs_as_returned": {"yes": 0.5, "no": 0.1},
    "predicted": None,
    "correct": None,
    "schema_error": "probs sum to 0.6, tolerance 0.001",
}


def check(task: Any, **changed: Any) -> None:
    made = record(task, raw_sha256=hashlib.sha256(b"{}").hexdigest(), **changed)
    _check_answer(AdoptedAnswer(made, Path("raw.json"), "{}"), {task.id: task})


def test_a_right_score_and_the_null_of_earlier_versions_are_taken_over() -> None:
    check(TASK)
    check(TRUTHLESS, **INVALID)
    check(TRUTHLESS, **INVALID | {"correct": False})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("valid", True),
        ("strict_valid", True),
        ("probs", {"yes": 0.5, "no": 0.5}),
        ("predicted", "yes"),
        ("correct", True),
        ("schema_error", "another"),
        ("renormalized", True),
        ("ordinal_ev", 1.0),
    ],
)
def test_one_part_that_is_another_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"scored again, {name} is another"):
        check(TRUTHLESS, **INVALID | {name: value})


@pytest.mark.parametrize(("name", "value"), [("correct", None), ("predicted", "no")])
def test_where_there_is_a_truth_null_is_another(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"scored again, {name} is another"):
        check(TASK, **{name: value})


@pytest.mark.parametrize("field", ["family", "split", "group"])
def test_a_record_of_another_place_is_refused(field: str) -> None:
    with pytest.raises(InputError, match="its record belongs to another task"):
        check(TASK, **{field: "elsewhere"})
