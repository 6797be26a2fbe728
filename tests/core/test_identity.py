"""An identity report as its file says it."""

import pytest

from jevexp.core.identity import ClaimStatus, IdentityReport, in_words


def report(**changed: object) -> IdentityReport:
    fields: dict[str, object] = {"verdict": "observed_only", "fields": {}, "findings": []}
    return IdentityReport.model_validate(fields | changed)


def test_what_is_not_said_is_nothing() -> None:
    made = report()
    assert (made.notes, made.bytes_hashed, made.bytes_read) == ([], 0, 0)
    assert (made.observed("x"), made.known("x"), made.reason()) == (None, None, None)


def test_a_contradiction_is_told_in_one_line() -> None:
    finding = {"code": "c", "field": "weights", "message": "is another"}
    made = report(
        verdict="contradicted",
        findings=[finding | {"level": level} for level in ("contradiction", "warning")],
    )
    assert made.status is ClaimStatus.CONTRADICTED
    assert made.reason() == "model.weights: is another"


@pytest.mark.parametrize(
    ("value", "words"),
    [({"F32": 1, "Q8_0": 2}, "F32 1, Q8_0 2"), ("a b", "a b"), (3, "3"), (None, "null")],
)
def test_values_are_printed_as_words(value: object, words: str) -> None:
    assert in_words(value) == words
