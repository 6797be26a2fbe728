"""Answers from a JSON Lines file."""

import json
from pathlib import Path
from typing import Any

import pytest

from jevexp.backends.replay import Replay
from jevexp.core.decision import Decision, ProbsSource, Request
from jevexp.errors import InputError
from tests.support.replays import replay_settings, write_answers
from tests.support.tasks import task

REQUEST = Request.of(task("noul"), "m-1")


def replay(folder: Path, *answers: dict[str, Any]) -> Replay:
    path = write_answers(folder / "answers.jsonl", [(REQUEST, answer) for answer in answers])
    return Replay(replay_settings(answers=path))


def decided(folder: Path, **answer: Any) -> Decision:
    return replay(folder, answer).decide(REQUEST)


def test_a_distribution_comes_as_it_stands(tmp_path: Path) -> None:
    probs = {"no": 0.5, "yes": 2, "other": None}
    decision = decided(tmp_path, probs=probs, model="m-7", usage={"input_tokens": 5})
    assert decision.ok
    assert (decision.probs, decision.model, decision.usage) == (probs, "m-7", {"input_tokens": 5})
    assert decision.probs_source is ProbsSource.NATIVE
    assert decision.request == REQUEST.wire()
    assert decision.response == {"probs": probs, "model": "m-7", "usage": {"input_tokens": 5}}


def test_numbers_that_a_model_wrote_are_told_apart(tmp_path: Path) -> None:
    decision = decided(tmp_path, probs={}, probs_source="verbalized")
    assert decision.probs_source is ProbsSource.VERBALIZED


@pytest.mark.parametrize("label", ["yes", "elsewhere", None])
def test_a_label_is_no_distribution(label: str | None, tmp_path: Path) -> None:
    decision = decided(tmp_path, label=label)
    assert decision.ok
    assert (decision.label, decision.probs) == (label, None)
    assert decision.probs_source is ProbsSource.LABEL_ONLY


def test_a_failure_is_one(tmp_path: Path) -> None:
    decision = decided(tmp_path, error="http_error", status_code=503)
    assert (decision.ok, decision.error, decision.status_code) == (False, "http_error", 503)


def test_null_criteria_and_left_out_ones_ask_the_same(tmp_path: Path) -> None:
    question = {"type": "noul", "instructions": "Is it?", "criteria": None}
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps({"state": 1, "question": question, "probs": {}}) + "\n\n")
    request = Request.of(task("noul", state=1, question=question), "m-1")
    assert Replay(replay_settings(answers=path)).decide(request).ok


def test_it_names_the_file_by_its_hash(tmp_path: Path) -> None:
    described = replay(tmp_path, {"error": "x"}).describe()
    assert described["source"]["answers"] == "answers.jsonl"
    assert len(described["source"]["sha256"]) == 64
    assert described["model"] is None


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({}, 'expected exactly one of "probs", "label" and "error"'),
        ({"probs": {}, "error": "x"}, 'expected exactly one of "probs", "label" and "error"'),
        ({"probs": None}, 'expected exactly one of "probs", "label" and "error"'),
        ({"error": None}, 'expected exactly one of "probs", "label" and "error"'),
        ({"probs": [0.5]}, "probs: "),
        ({"probs": {}, "modell": "x"}, "modell: Extra inputs are not permitted"),
        ({"error": "x", "status_code": "503"}, "status_code: "),
        ({"probs": {}, "question": {"type": "noul"}}, "instructions: Field required"),
        ({"probs": {}, "question": 5}, "question: "),
    ],
)
def test_a_line_that_is_no_answer_is_refused_with_its_number(
    answer: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refused:
        replay(tmp_path, {"error": "first"}, answer)
    assert f"answers.jsonl:2: not an answer: {said}" in str(refused.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no answers"),
        (b"\n\n", "holds no answers"),
        (b"{", "answers.jsonl:1: not an answer"),
        (b'{"a": 1}\n[1]', "answers.jsonl:1: not an answer"),
        (b"[1]", r"holds one JSON array; write one object a line: jq -c '\.\[\]' "),
        (b'{"state":\n1}', r"holds JSON that goes on over several lines; .*: jq -c \. "),
        (b'{"state": NaN}', "NaN is not a JSON number"),
        (b'{"question": {}, "error": "x"}', "state: "),
    ],
)
def test_a_file_that_holds_no_answers_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        Replay(replay_settings(answers=path))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^backend\.answers: .*gone: No such file"):
        Replay(replay_settings(answers=tmp_path / "gone"))
