"""One line of the results, written and read again."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from jevexp.core.json import dumps, loads
from jevexp.core.record import Record
from tests.support.tasks import record, task

FULL = record(
    task("score"),
    probs={"0": 0.0, "1": 0.25, "2": 0.75, "3": 0},
    probs_as_returned={"0": 0, "1": "nan", "2": 10**300},
    usage={"input_tokens": 5},
    runtime={"deep": [{"er": None}]},
    ordinal_ev=1.75,
    status_code=200,
)


def test_a_record_is_the_same_after_its_line() -> None:
    assert Record.model_validate(loads(dumps(FULL.line()))) == FULL
    prepared = FULL.model_copy(update={"prepare_s": 0.5})
    assert Record.model_validate(loads(dumps(prepared.line()))) == prepared


def test_the_time_of_preparation_is_there_only_where_something_was_prepared() -> None:
    assert "prepare_s" not in FULL.line()
    prepared = FULL.model_copy(update={"prepare_s": 0.0})
    assert list(prepared.line())[-1] == "prepare_s"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("latency_s", "0.5"),
        ("latency_s", "nan"),
        ("latency_s", float("inf")),
        ("probs", {"0": float("nan")}),
        ("probs", {"0": "0.5"}),
        ("valid", 1),
        ("ok", "true"),
        ("status", "skipped"),
        ("status_code", "200"),
        ("status_code", True),
        ("task_id", 5),
        ("surprise", None),
    ],
)
def test_a_line_with_anything_else_in_it_is_no_record(field: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        Record.model_validate(FULL.line() | {field: value})


def test_every_field_must_be_there() -> None:
    for field in FULL.line():
        line = FULL.line()
        del line[field]
        with pytest.raises(ValidationError, match="Field required"):
            Record.model_validate(line)


def test_the_written_line_is_plain_json() -> None:
    assert json.loads(dumps(FULL.line())) == FULL.line()


@pytest.mark.parametrize(
    ("field", "taken", "refused"),
    [
        ("ts", [0, 253402300799.5], [-1e-9, 253402300800]),
        ("latency_s", [0, 1e15], [-1e-9, 1.1e15, None]),
        ("cost_usd", [0, 1e15, None], [-1e-9, 1.1e15]),
        ("reserved_usd", [0, 1e15], [-1e-9, 1.1e15]),
        ("charged_usd", [0, 1e15], [-1e-9, 1.1e15]),
        ("ordinal_ev", [0, 1e15, None], [-1e-9, 1.1e15]),
        ("prepare_s", [0, 1e15, None], [-1e-9, 1.1e15]),
        ("probs", [{"0": 0, "1": 1}, {}, None], [{"0": -1e-9}, {"0": 1.0000000000000002}]),
    ],
)
def test_quantities_end_where_they_should(field: str, taken: list[Any], refused: list[Any]) -> None:
    for value in taken:
        assert getattr(Record.model_validate(FULL.line() | {field: value}), field) == value
    for value in refused:
        with pytest.raises(ValidationError, match=f"for Record\n{field}"):
            Record.model_validate(FULL.line() | {field: value})
