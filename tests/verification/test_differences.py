"""Where two summaries differ."""

from typing import Any

import pytest

from jevexp.verification.differences import differences


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
