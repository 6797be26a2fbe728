"""What a check counts and keeps, and where two summaries differ."""

from typing import Any

import pytest

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
        check.expect("value", line, -1, "results.jsonl", line=line)

    assert check.result is Result.FAIL
    assert (check.count, check.failed) == (MOST_KEPT + 30, MOST_KEPT + 30)
    assert [failure.line for failure in check.failures] == list(range(MOST_KEPT))
    plain = check.as_dict()
    assert (plain["count"], plain["failed"], len(plain["failures"])) == (50, 50, 20)


def test_what_breaks_after_the_kept_failures_counts_as_well() -> None:
    check = Check("files", "all of them")
    for line in range(MOST_KEPT + 5):
        with check.guarded("results.jsonl", line=line):
            raise KeyError("model")

    assert check.failed == MOST_KEPT + 5
    assert check.failures[0].message == "the field 'model' is missing"
