"""What makes a task a task, in the words that a person reads when it is not."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from jevexp.core.json import dumps
from jevexp.core.task import GOLD_KEYS, Kind, Question, Task, as_text
from tests.support.tasks import LABELS, LEVELS, fields, kinds, scored_tasks, task

VECTORS = Path(__file__).parents[1] / "conformance"


def why_not(kind: str, **changes: Any) -> str:
    """The first reason why a task with these changes is none."""
    with pytest.raises(ValidationError) as raised:
        task(kind, **changes)
    return raised.value.errors()[0]["msg"].removeprefix("Value error, ")


def question(kind: str, **changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = fields(kind)["question"] | changes
    return found


# Common rules


@given(kinds())
def test_a_good_task_of_each_kind_is_one(kind: str) -> None:
    of = task(kind)
    assert of.kind is Kind(kind)
    assert of.question.options == of.labels
    assert of.scorable


@pytest.mark.parametrize("key", sorted(GOLD_KEYS))
def test_a_state_must_not_give_the_answer_away(key: str) -> None:
    assert why_not("noul", state={key: None}) == (
        f"state: has the key {key!r}, which gives the answer away"
    )


@pytest.mark.parametrize(
    "state", [None, 5, "expected", [], ["label"], {"labels": 1}, {"inner": {"expected": "x"}}]
)
def test_any_other_state_is_allowed(state: Any) -> None:
    assert task("noul", state=state).state == state


def test_labels_must_differ() -> None:
    assert why_not("choice", labels=["a", "a"]) == "labels: a label occurs twice"


@pytest.mark.parametrize("field", ["id", "family"])
@pytest.mark.parametrize("value", ["", 5, None, "half \ud800"])
def test_names_are_texts_that_are_not_empty(field: str, value: Any) -> None:
    assert why_not("noul", **{field: value})


@pytest.mark.parametrize(
    "changes",
    [
        {"split": "test"},
        {"labels": []},
        {"labels": "no"},
        {"labels": ["no", 1]},
        {"group": 5},
        {"provenance": []},
        {"expected": 1.5},
        {"expected": True},
        {"expected": ["yes"]},
        {"question": "Is it?"},
        {"question": {"type": "maybe", "instructions": "x"}},
        {"question": {"type": "noul"}},
        {"question": {"type": "noul", "instructions": 5}},
        {"question": {"type": "noul", "instructions": "x", "criteria": "y"}},
    ],
)
def test_fields_of_another_type_are_refused(changes: dict[str, Any]) -> None:
    assert why_not("noul", **changes)


@pytest.mark.parametrize(
    "field", ["id", "family", "state", "question", "labels", "expected", "split"]
)
def test_seven_fields_must_be_there(field: str) -> None:
    incomplete = fields("noul")
    del incomplete[field]
    with pytest.raises(ValidationError, match="Field required"):
        Task.model_validate(incomplete)


def test_group_and_provenance_may_be_left_out() -> None:
    short = fields("noul")
    del short["group"], short["provenance"]
    of = Task.model_validate(short)
    assert of.group is None
    assert of.provenance == {}


def test_a_task_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        task("noul").expected = "no"  # type: ignore[misc]


# Noul


@pytest.mark.parametrize(
    "labels", [["yes", "no"], ["no", "yes", "maybe"], ["No", "Yes"], ["no"], ["yes"]]
)
def test_a_noul_task_has_exactly_no_and_yes(labels: list[str]) -> None:
    assert why_not("noul", labels=labels) == 'labels: a noul task has exactly ["no", "yes"]'


@pytest.mark.parametrize(
    "criteria",
    [{}, {"yes": "x"}, {"true": "x", "false": "y", "null": "z"}, {"no": 1, "yes": 2}, []],
)
def test_noul_criteria_describe_true_and_false(criteria: Any) -> None:
    assert why_not("noul", question=question("noul", criteria=criteria)) == (
        'question.criteria: a noul task has "true", "false" or both as keys, or is null'
    )


@pytest.mark.parametrize("key", ["true", "false"])
def test_noul_criteria_may_describe_only_one_of_the_two(key: str) -> None:
    asked = task("noul", question=question("noul", criteria={key: "it is so"})).question
    assert asked.options == ("no", "yes")
    assert asked.wire()["criteria"] == {key: "it is so"}
    assert sorted(asked.descriptions.values()) == ["", "it is so"]


def test_noul_and_choice_do_without_criteria() -> None:
    assert task("noul", question=question("noul", criteria=None)).question.options == ("no", "yes")
    assert task("choice", question=question("choice", criteria=None)).question.options == ()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("noul", "true"), ("noul", "Yes"), ("noul", 1), ("choice", "Billing"), ("choice", 0)],
)
def test_the_expected_answer_is_one_of_the_labels(kind: str, expected: Any) -> None:
    assert why_not(kind, expected=expected) == f"expected: {expected!r} is not one of the labels"


# Choice


@pytest.mark.parametrize(
    "criteria",
    [{}, {"billing": "x"}, dict.fromkeys([*LABELS, "other"], "x"), list(LABELS)],
)
def test_choice_criteria_map_exactly_the_labels(criteria: Any) -> None:
    assert why_not("choice", question=question("choice", criteria=criteria)) == (
        "question.criteria: a choice task maps exactly its labels, or is null"
    )


# Score


@pytest.mark.parametrize("criteria", [None, [], {"0": "poor"}])
def test_a_score_task_lists_its_levels(criteria: Any) -> None:
    assert why_not("score", question=question("score", criteria=criteria)) == (
        "question.criteria: a score task lists its levels, lowest first"
    )


@pytest.mark.parametrize(
    "labels", [["0", "1", "2"], ["1", "2", "3", "4"], ["3", "2", "1", "0"], list(LEVELS)]
)
def test_score_labels_are_the_numbers_of_the_levels(labels: list[str]) -> None:
    assert why_not("score", labels=labels) == ('labels: a score task with 4 levels has "0" to "3"')


@pytest.mark.parametrize("expected", ["2", -1, 4, "good"])
def test_a_score_task_expects_a_whole_number(expected: Any) -> None:
    assert why_not("score", expected=expected) == (
        f"expected: a score task expects a whole number from 0 to 3, found {expected!r}"
    )


@pytest.mark.parametrize("level", [0, 3])
def test_the_expected_level_as_text_is_a_label(level: int) -> None:
    of = task("score", expected=level)
    assert of.gold == str(level)
    assert of.gold in of.labels


# Truth


@pytest.mark.parametrize(
    ("expected", "provenance", "scorable"),
    [
        ("yes", {}, True),
        ("yes", None, True),
        ("yes", {"exclude_reason": ""}, True),
        ("yes", {"exclude_reason": None}, True),
        ("yes", {"exclude_reason": "ambiguous"}, False),
        ("yes", {"exclude_reason": 1}, False),
        (None, {}, False),
    ],
)
def test_a_task_counts_when_it_has_a_truth_and_no_reason_against(
    expected: Any, provenance: Any, scorable: bool
) -> None:
    assert task("noul", expected=expected, provenance=provenance).scorable is scorable


# What is sent, and what is hashed


def test_a_question_goes_out_without_null_criteria_and_without_other_keys() -> None:
    of = Question.model_validate(
        {"type": "noul", "instructions": "Is it?", "criteria": None, "note": "x"}
    )
    assert of.wire() == {"type": "noul", "instructions": "Is it?"}


def test_the_canonical_form_has_all_nine_fields_and_the_questions_own_keys() -> None:
    short = fields("noul", question={"type": "noul", "instructions": "Is it?", "note": "x"})
    del short["group"], short["provenance"]
    assert Task.model_validate(short | {"unknown": 1}).canonical() == {
        "id": "noul-1",
        "family": "family of noul",
        "state": "An invoice from March.",
        "question": {"type": "noul", "instructions": "Is it?", "note": "x"},
        "labels": ["no", "yes"],
        "expected": "yes",
        "split": "public",
        "group": None,
        "provenance": {},
    }


def test_null_criteria_and_null_provenance_stay_null_in_the_canonical_form() -> None:
    of = task("noul", question=question("noul", criteria=None), provenance=None)
    assert of.canonical()["question"]["criteria"] is None
    assert of.canonical()["provenance"] is None


@given(scored_tasks())
def test_the_canonical_form_is_that_of_the_line_it_came_from(of: Task) -> None:
    assert Task.model_validate_json(dumps(of.canonical())) == of
    assert Task.model_validate(of.canonical()).canonical() == of.canonical()


def test_the_vectors_tasks_have_the_hash_that_the_pinned_harness_gives_them() -> None:
    lines = (VECTORS / "tasks.jsonl").read_text(encoding="utf-8").splitlines()
    canonical = sorted(
        dumps(Task.model_validate_json(line).canonical(), sort_keys=True) for line in lines
    )
    digest = hashlib.sha256("".join(f"{line}\n" for line in canonical).encode()).hexdigest()
    vectors = json.loads((VECTORS / "scenarios.json").read_text())
    assert digest == vectors["dataset_hash_of_tasks_jsonl"]


@pytest.mark.parametrize(
    ("kind", "criteria", "descriptions"),
    [
        ("noul", {"true": "it is", "false": "it is not"}, {"no": "it is not", "yes": "it is"}),
        ("noul", {"true": "it is"}, {"no": "", "yes": "it is"}),
        ("noul", None, {"no": "", "yes": ""}),
        ("choice", {"b": "second", "a": None}, {"b": "second", "a": ""}),
        ("choice", {"a": {"than": 1}}, {"a": '{\n  "than": 1\n}'}),
        ("choice", None, {}),
        ("score", ["low", "high"], {"0": "low", "1": "high"}),
    ],
)
def test_a_question_describes_its_options_in_their_order(
    kind: str, criteria: Any, descriptions: dict[str, str]
) -> None:
    question = Question(type=Kind(kind), instructions="?", criteria=criteria)

    assert list(question.descriptions.items()) == list(descriptions.items())


def test_a_text_is_read_as_it_is_and_anything_else_as_json() -> None:
    assert as_text("a\nb") == "a\nb"
    assert as_text(None) == ""
    assert as_text({"b": 1, "a": 2}) == '{\n  "b": 1,\n  "a": 2\n}'
