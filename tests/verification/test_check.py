"""What a check counts and keeps, and where two summaries differ."""

from typing import Any

import pytest

from jevexp.store.directory import MANIFEST
from jevexp.verification import Check, Result
from jevexp.verification.check import MOST_KEPT, differences


@pytest.mark.parametrize(
    ("stored", "computed", "said"),
    [
        ({"a": 0.1 + 0.2}, {"a": 0.3}, []),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": True}, {"a": 1}, ["a: stored true, computed 1"]),
        ({"a": None}, {"a": 0}, ["a: stored null, computed 0"]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, ["a.b[1]: stored 2, computed 3"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a: stored [1], computed [1, 2]"]),
        ({}, {"a": 1}, ["a: only computed"]),
        ({"a": "x"}, {"a": "y"}, ['a: stored "x", computed "y"']),
    ],
)
def test_differences_are_named_by_place(stored: Any, computed: Any, said: list[str]) -> None:
    assert list(differences(stored, computed)) == said


def test_every_failure_counts_and_the_first_ones_are_kept() -> None:
    check = Check("files", "all of them")
    for line in range(MOST_KEPT + 30):
        check.fail("results.jsonl", "is no record", line=line)

    assert check.result is Result.FAIL
    assert check.failed == MOST_KEPT + 30
    assert [failure.line for failure in check.failures] == list(range(MOST_KEPT))
    plain = check.as_dict()
    assert (plain["failed"], len(plain["failures"])) == (50, 20)
    assert plain["failures"][1] == {"file": "results.jsonl", "line": 1, "message": "is no record"}


def test_a_field_of_the_manifest_is_compared_by_value_and_type() -> None:
    check = Check("manifest", "counts")
    check.expect("counts.valid", 1, 1)
    assert check.result is Result.PASS

    check.expect("counts.valid", True, 1)
    check.expect("counts.valid", 2, 1)

    assert (check.count, check.failed) == (3, 2)
    assert check.as_dict() == {
        "name": "manifest",
        "covers": "counts",
        "result": "fail",
        "count": 3,
        "failed": 2,
        "failures": [
            {"file": MANIFEST, "line": None, "message": "counts.valid: True, expected 1"},
            {"file": MANIFEST, "line": None, "message": "counts.valid: 2, expected 1"},
        ],
        "notes": [],
        "reason": None,
    }


def test_what_breaks_after_the_kept_failures_counts_as_well() -> None:
    check = Check("files", "all of them")
    for line in range(MOST_KEPT + 5):
        with check.guarded("results.jsonl", line=line):
            raise KeyError("model")

    assert check.failed == MOST_KEPT + 5
    assert check.failures[0].message == "the field 'model' is missing"
