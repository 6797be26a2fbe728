"""Reading task files: every rule has a message that names file, line, task and field."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jevexp.core.task import Task
from jevexp.datasets import dataset_hash, load_tasks
from jevexp.datasets.tasks import Tasks
from jevexp.errors import InputError
from jevexp.untrusted.files import MAX_LINE_BYTES

CONFORMANCE = Path(__file__).parents[1] / "conformance"
LINES = (CONFORMANCE / "tasks.jsonl").read_bytes().splitlines(True)
ALL = load_tasks(CONFORMANCE / "tasks.jsonl")

NOUL = {
    "id": "t1",
    "family": "policy",
    "state": "The order is 12 days old.",
    "question": {"type": "noul", "instructions": "Is a refund allowed?"},
    "labels": ["no", "yes"],
    "expected": "yes",
    "split": "public",
}
CHOICE = NOUL | {
    "question": {"type": "choice", "instructions": "Which?", "criteria": {"a": "A", "b": "B"}},
    "labels": ["a", "b"],
    "expected": "b",
}
SCORE = NOUL | {
    "question": {"type": "score", "instructions": "How far?", "criteria": ["low", "high"]},
    "labels": ["0", "1"],
    "expected": 1,
}


def question(**changes: Any) -> dict[str, Any]:
    return {"type": "noul", "instructions": "Is a refund allowed?"} | changes


def without(field: str) -> dict[str, Any]:
    return {key: value for key, value in NOUL.items() if key != field}


def write(folder: Path, *lines: dict[str, Any] | str | bytes) -> Path:
    path = folder / "tasks.jsonl"
    raw = [
        line
        if isinstance(line, bytes)
        else (line if isinstance(line, str) else json.dumps(line)).encode()
        for line in lines
    ]
    path.write_bytes(b"".join(line + b"\n" for line in raw))
    return path


def refusal(path: Path, *, strict: bool = True) -> str:
    """The error's line, with the test's folder taken out."""
    with pytest.raises(InputError) as caught:
        load_tasks(path, strict=strict)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(str(path), "FILE")


def test_tasks_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, NOUL | {"id": "z"}, CHOICE | {"id": "a"}, SCORE | {"id": "m"})
    assert [task.id for task in load_tasks(path)] == ["z", "a", "m"]


def test_a_path_may_be_text(tmp_path: Path) -> None:
    assert len(load_tasks(str(write(tmp_path, NOUL)))) == 1


def test_defaults_are_filled_in(tmp_path: Path) -> None:
    (task,) = load_tasks(write(tmp_path, NOUL))
    assert (task.group, task.provenance, task.question.criteria) == (None, {}, None)


def test_blank_lines_are_skipped_but_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "", NOUL, "  \t", "\r", "[]")
    assert refusal(path) == "FILE:5: expected an object, found []"


def test_windows_line_ends_and_a_missing_last_one_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(f"{json.dumps(NOUL)}\r\n{json.dumps(NOUL | {'id': 't2'})}".encode())
    assert [task.id for task in load_tasks(path)] == ["t1", "t2"]


def test_a_line_separator_inside_a_text_does_not_end_the_line(tmp_path: Path) -> None:
    line = json.dumps(NOUL | {"state": "one\u2028two\u0085three"}, ensure_ascii=False)
    (task,) = load_tasks(write(tmp_path, line))
    assert task.state == "one\u2028two\u0085three"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "not JSON: Expecting property name enclosed in double quotes at column 2"),
        (b'"x"', 'expected an object, found "x"'),
        (b'{"a": NaN}', "not JSON: NaN is not a JSON number"),
        (b'{"a": 1e999}', "not JSON: 1e999 is too large for a number"),
        pytest.param(b"[" * 100_000, "not JSON: nested too deep", id="deep"),
        (b'{"a": "\xff"}', "not UTF-8: byte 0xff at position 8"),
        ("{}".encode("utf-16"), "not UTF-8: byte 0xff at position 1"),
        (b"\xef\xbb\xbf{}", "begins with a byte order mark; save the file as UTF-8 without one"),
        (b'{"id": "t1", "id": "t2"}', "task 't2': the key 'id' occurs twice in one object"),
        (
            b'{"id": "t1", "state": [{"a": 1, "a": 1}]}',
            "task 't1': the key 'a' occurs twice in one object",
        ),
        (
            b'{"id": "t1", "state": "\\ud83d"}',
            "task 't1': '\\ud83d' is half of a surrogate pair, not a character",
        ),
    ],
)
def test_a_line_that_is_no_json_object_is_refused(
    tmp_path: Path, line: bytes, message: str
) -> None:
    path = write(tmp_path, line)
    assert refusal(path) == refusal(path, strict=False) == f"FILE:1: {message}"


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("document", "finding", "parts"),
    [
        (json.dumps(NOUL, indent=2), "JSON that goes on over several lines", "."),
        (
            f"{json.dumps(NOUL, indent=2)}\n{json.dumps(CHOICE, indent=2)}\n",
            "JSON that goes on over several lines",
            ".",
        ),
        (json.dumps([NOUL, CHOICE], indent=2), "one JSON array", "'.[]'"),
        (json.dumps([NOUL, CHOICE]), "one JSON array", "'.[]'"),
        (f"\n\n[\n{json.dumps(NOUL)}\n]", "one JSON array", "'.[]'"),
        (
            json.dumps({"my tasks": [NOUL]}, indent=1),
            "one JSON object that holds an array, 'my tasks'",
            "'.\"my tasks\"[]'",
        ),
    ],
)
def test_a_file_that_is_one_document_gets_the_command_that_makes_lines_of_it(
    tmp_path: Path, document: str, finding: str, parts: str, strict: bool
) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(document)
    lines = tmp_path / "tasks-lines.jsonl"
    assert refusal(path, strict=strict) == (
        f"FILE: holds {finding}; write one object a line: jq -c {parts} FILE > {lines}"
    )


@pytest.mark.parametrize(
    "document",
    [f"{json.dumps(NOUL)}\n{json.dumps(CHOICE | {'id': 't2'}, indent=2)}\n", "{\n\n", '"a\nb"'],
)
def test_other_files_keep_the_line_of_the_mistake(tmp_path: Path, document: str) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(document)
    assert "FILE:" in refusal(path)
    assert "not JSON" in refusal(path)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (NOUL | {"family": None}, "family: expected text, found null"),
        (without("state"), "state: missing"),
        (without("expected"), "expected: missing"),
        (NOUL | {"question": "why?"}, 'question: expected an object, found "why?"'),
        (
            NOUL | {"question": question(type="bool")},
            'question.type: expected "noul", "choice" or "score", found "bool"',
        ),
        (
            NOUL | {"question": question(instructions=["x"])},
            'question.instructions: expected text, found ["x"]',
        ),
        (
            NOUL | {"question": question(criteria=3)},
            "question.criteria: expected an object, a list or null, found 3",
        ),
        (
            NOUL | {"question": question(criteria={"yes": "x"})},
            'question.criteria: a noul task has "true", "false" or both as keys, or is null',
        ),
        (NOUL | {"labels": []}, "labels: must not be empty"),
        (NOUL | {"labels": "no"}, 'labels: expected a list, found "no"'),
        (NOUL | {"labels": ["no", 1]}, "labels.1: expected text, found 1"),
        (NOUL | {"labels": ["no", "no"]}, "labels: a label occurs twice"),
        (NOUL | {"labels": ["yes", "no"]}, 'labels: a noul task has exactly ["no", "yes"]'),
        (NOUL | {"expected": "maybe"}, "expected: 'maybe' is not one of the labels"),
        (
            NOUL | {"expected": True},
            "expected: takes a label, the number of a level or null, found true",
        ),
        (NOUL | {"split": "test"}, 'split: expected "public" or "private", found "test"'),
        (NOUL | {"group": 1}, "group: expected text, found 1"),
        (NOUL | {"provenance": []}, "provenance: expected an object, found []"),
        (
            NOUL | {"family": {"long": "x" * 99}},
            f'family: expected text, found {{"long": "{"x" * 49}…',
        ),
        (
            NOUL | {"state": {"label": "x"}},
            "state: has the key 'label', which gives the answer away",
        ),
        (
            NOUL | {"state": {"expected": "x"}},
            "state: has the key 'expected', which gives the answer away",
        ),
        (
            NOUL | {"state": {"answer_key": 1}},
            "state: has the key 'answer_key', which gives the answer away",
        ),
        (
            NOUL | {"state": {"ground_truth": 1}},
            "state: has the key 'ground_truth', which gives the answer away",
        ),
        (
            CHOICE | {"labels": ["a", "c"]},
            "question.criteria: a choice task maps exactly its labels, or is null",
        ),
        (
            SCORE | {"expected": "1"},
            "expected: a score task expects a whole number from 0 to 1, found '1'",
        ),
        (
            SCORE | {"expected": 2},
            "expected: a score task expects a whole number from 0 to 1, found 2",
        ),
        (
            SCORE | {"expected": 1.0},
            "expected: takes a label, the number of a level or null, found 1.0",
        ),
        (SCORE | {"labels": ["1", "2"]}, 'labels: a score task with 2 levels has "0" to "1"'),
        (
            SCORE | {"question": question(type="score")},
            "question.criteria: a score task lists its levels, lowest first",
        ),
    ],
)
def test_a_task_that_breaks_a_rule_is_refused(
    tmp_path: Path, task: dict[str, Any], message: str
) -> None:
    path = write(tmp_path, task)
    assert refusal(path) == refusal(path, strict=False) == f"FILE:1: task 't1': {message}"


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (without("id"), "id: missing"),
        (NOUL | {"id": 7}, "id: expected text, found 7"),
        (NOUL | {"id": ""}, "task '': id: must not be empty"),
    ],
)
def test_a_task_without_a_usable_id_is_refused(
    tmp_path: Path, task: dict[str, Any], message: str
) -> None:
    assert refusal(write(tmp_path, task)) == f"FILE:1: {message}"


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (NOUL | {"goup": "g"}, "goup: no such field; did you mean group?"),
        (
            NOUL | {"question": question(criterion={})},
            "question.criterion: no such field; did you mean question.criteria?",
        ),
        (
            NOUL | {"x y\n": 1},
            "'x y\\n': no such field; there are id, family, state, question, labels, expected, "
            "split, group, provenance",
        ),
        (
            NOUL | {"question": question(zzz=1)},
            "question.zzz: no such field; there are type, instructions, criteria",
        ),
    ],
)
def test_unknown_fields_are_refused_only_when_strict(
    tmp_path: Path, task: dict[str, Any], message: str
) -> None:
    path = write(tmp_path, task)
    assert refusal(path) == f"FILE:1: task 't1': {message}"
    assert len(load_tasks(path, strict=False)) == 1


def test_an_id_is_shown_on_one_line(tmp_path: Path) -> None:
    path = write(tmp_path, NOUL | {"id": "a\nb\x1b[2J", "family": 1})
    assert refusal(path) == r"FILE:1: task 'a\nb\x1b[2J': family: expected text, found 1"


def test_a_second_task_with_an_id_is_refused_with_both_places(tmp_path: Path) -> None:
    path = write(tmp_path, NOUL, "", CHOICE | {"id": "t2"}, SCORE)
    assert refusal(path) == "FILE:4: task 't1': id: also at FILE:1"


@pytest.mark.parametrize("lines", [(), ("", " ")])
def test_a_file_without_tasks_is_refused(tmp_path: Path, lines: tuple[str, ...]) -> None:
    expected = "FILE: holds no tasks; a task file has one JSON object a line"
    assert refusal(write(tmp_path, *lines)) == expected


def test_a_state_deeper_than_evidence_can_hold_is_refused(tmp_path: Path) -> None:
    fits, deep = "[" * 100 + "]" * 100, "[" * 101 + "]" * 101
    line = json.dumps(CHOICE | {"state": 0})
    load_tasks(write(tmp_path, line.replace('"state": 0', f'"state": {fits}')))
    assert refusal(write(tmp_path, line.replace('"state": 0', f'"state": {deep}'))) == (
        "FILE:1: task 't1': state: nested more than 100 levels deep"
    )


def test_criteria_too_deep_to_be_written_out_are_refused(tmp_path: Path) -> None:
    deep = "[" * 200 + "]" * 200
    line = json.dumps(CHOICE).replace('"A"', deep)
    assert refusal(write(tmp_path, line)) == (
        "FILE:1: task 't1': question.criteria: nested more than 100 levels deep"
    )


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = write(tmp_path, NOUL, NOUL | {"id": "t2", "state": "x" * MAX_LINE_BYTES})
    assert refusal(path) == "FILE:2: longer than 16777216 bytes; one task a line"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, "No such file or directory"),
        (lambda path: path.mkdir(), "expected a file, found a folder"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, make: Callable[[Path], None], reason: str
) -> None:
    path = tmp_path / "tasks.jsonl"
    make(path)
    assert refusal(path) == f"FILE: cannot read the task file: {reason}"


def test_dataset_hash_is_the_benchmarks() -> None:
    # From the conformance vectors, which no code of this project computed.
    assert (
        dataset_hash(load_tasks(CONFORMANCE / "tasks.jsonl"))
        == "46addbd7fa10635e5d70269362dfa158e542580d8215fe384561211d1e25d791"
    )


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
# No state may have a key such as "label".
keys = texts.map("k".__add__)
finite = st.floats(allow_nan=False, allow_infinity=False)
states = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | texts,
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(keys, parts, max_size=3),
    max_leaves=6,
)
tasks = st.builds(
    lambda id, family, state, base, split, group, note: Task.model_validate(
        base
        | {"id": id, "family": family, "state": state, "split": split, "group": group}
        | {"provenance": {"source": note}}
    ),
    texts,
    texts,
    states,
    st.sampled_from([NOUL, CHOICE, SCORE]),
    st.sampled_from(["public", "private"]),
    st.none() | texts,
    texts,
)
task_lists = st.lists(tasks, min_size=1, max_size=5, unique_by=lambda task: task.id)


@given(task_lists.flatmap(lambda some: st.tuples(st.just(some), st.permutations(some))))
def test_dataset_hash_does_not_depend_on_the_order(orders: tuple[list[Task], list[Task]]) -> None:
    assert dataset_hash(orders[0]) == dataset_hash(orders[1])


CHANGES: dict[str, Callable[[Task], dict[str, Any]]] = {
    "id": lambda task: {"id": task.id + "x"},
    "family": lambda task: {"family": task.family + "x"},
    "state": lambda task: {"state": [task.state]},
    "question": lambda task: {
        "question": {"type": "choice", "instructions": "Other?", "criteria": None},
        "labels": ["a", "b"],
        "expected": None,
    },
    "expected": lambda task: {"expected": None},
    "split": lambda task: {"split": "private" if task.split == "public" else "public"},
    "group": lambda task: {"group": (task.group or "") + "x"},
    "provenance": lambda task: {"provenance": (task.provenance or {}) | {"x": None}},
}


@pytest.mark.parametrize("field", CHANGES)
@given(some=task_lists)
def test_dataset_hash_changes_with_every_field(field: str, some: list[Task]) -> None:
    changed = Task.model_validate(some[0].canonical() | CHANGES[field](some[0]))
    assert dataset_hash([changed, *some[1:]]) != dataset_hash(some)


@given(some=task_lists)
def test_dataset_hash_survives_writing_and_reading(
    some: list[Task], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = write(tmp_path_factory.mktemp("tasks"), *[task.canonical() for task in some])
    assert dataset_hash(load_tasks(path)) == dataset_hash(some)


def test_dataset_hash_changes_with_the_order_of_labels(tmp_path: Path) -> None:
    turned = CHOICE | {"labels": ["b", "a"]}
    assert dataset_hash([Task.model_validate(CHOICE)]) != dataset_hash(
        [Task.model_validate(turned)]
    )


def test_they_are_a_sequence_of_the_same_tasks_every_time() -> None:
    tasks = Tasks(LINES)
    assert len(tasks) == len(ALL) == 36
    assert list(tasks) == list(tasks) == ALL
    assert (tasks[0], tasks[-1]) == (ALL[0], ALL[-1])
    assert list(tasks[5:9]) == ALL[5:9]
    assert list(tasks[:None]) == ALL
    assert ALL[7] in tasks
    with pytest.raises(IndexError):
        tasks[36]


def test_options_keep_the_order_of_the_file() -> None:
    for line, task in zip(LINES, Tasks(LINES), strict=True):
        if isinstance(task.question.criteria, dict):
            places = [line.find(f'"{label}":'.encode()) for label in task.question.criteria]
            assert places == sorted(places)


@pytest.mark.parametrize(
    ("count", "shown"),
    [(56, '["' + "x" * 56 + '"]'), (57, '["' + "x" * 57 + "…")],
)
def test_of_a_long_value_the_first_sixty_characters_are_shown(
    tmp_path: Path, count: int, shown: str
) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps({"id": ["x" * count]}) + "\n")
    with pytest.raises(InputError, match=re.escape(f"found {shown}") + "$"):
        load_tasks(path)
