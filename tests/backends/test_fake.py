"""The offline provider: its three modes, and what it must never learn."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jevexp.backends.fake import Fake, answer_key
from jevexp.backends.protocol import make_backend
from jevexp.core.decision import Decision, Request
from jevexp.core.task import Question, Task
from jevexp.errors import InputError
from jevexp.settings import FakeBackend, ModelIdentity
from tests.support.tasks import scored_tasks, task

IDENTITY = ModelIdentity(name="fake", alias="fake")


def settings(mode: str, **changes: Any) -> FakeBackend:
    fields: dict[str, Any] = {
        "kind": "fake",
        "name": "fake",
        "mode": mode,
        "script": None,
        "accuracy": 0.8,
        "seed": 0,
        "latency_s": 0.0,
    }
    return FakeBackend(**fields | changes)


def request(of: Task) -> Request:
    return Request.of(of, "fake")


def many(count: int, kind: str = "choice") -> list[Task]:
    return [task(kind, id=f"t{n}", state=f"letter number {n}") for n in range(count)]


def noisy(tasks: list[Task], **changes: Any) -> Fake:
    return Fake(settings("noise", **changes), answer_key(tasks))


def top(decision: Decision) -> str:
    assert decision.probs is not None
    probs = dict(decision.probs)
    return max(probs, key=lambda label: float(probs[label]))


def scripted(folder: Path, script: Any) -> Fake:
    path = folder / "script.json"
    path.write_text(json.dumps(script))
    return Fake(settings("script", script=str(path)), {})


# Uniform


@given(scored_tasks())
def test_uniform_finds_every_option_equally_likely(of: Task) -> None:
    decision = Fake(settings("uniform"), {}).decide(request(of))
    assert decision.ok
    assert decision.probs == dict.fromkeys(of.labels, 1 / len(of.labels))
    assert decision.model == "fake"
    assert decision.request == request(of).wire()
    assert decision.response == {"model": "fake", "probabilities": decision.probs}


@pytest.mark.parametrize("mode", ["uniform", "noise"])
def test_a_choice_without_criteria_has_no_options_to_answer(mode: str) -> None:
    of = task("choice", question={"type": "choice", "instructions": "Which?"})
    decision = Fake(settings(mode), {}).decide(request(of))
    assert not decision.ok
    assert decision.error == "options_unknown"


# Noise


@given(scored_tasks(), st.floats(0, 1), st.integers(-5, 5))
def test_noise_is_a_distribution_over_the_options(of: Task, accuracy: float, seed: int) -> None:
    decision = noisy([of], accuracy=accuracy, seed=seed).decide(request(of))
    assert decision.probs is not None
    assert list(decision.probs) == list(of.labels)
    assert all(0 <= p <= 1 for p in decision.probs.values())
    assert sum(decision.probs.values()) == pytest.approx(1, abs=1e-12)
    assert max(decision.probs.values()) > 0.5


@pytest.mark.parametrize("kind", ["noul", "choice", "score"])
@pytest.mark.parametrize(("accuracy", "share"), [(1.0, 1.0), (0.0, 0.0)])
def test_noise_without_chance_is_always_or_never_right(
    kind: str, accuracy: float, share: float
) -> None:
    tasks = many(30, kind)
    fake = noisy(tasks, accuracy=accuracy)
    right = sum(top(fake.decide(request(of))) == of.gold for of in tasks)
    assert right / len(tasks) == share


def test_noise_is_right_about_as_often_as_it_is_told() -> None:
    tasks = many(500)
    fake = noisy(tasks, accuracy=0.7)
    right = sum(top(fake.decide(request(of))) == of.gold for of in tasks)
    # Four standard deviations.
    assert right / len(tasks) == pytest.approx(0.7, abs=4 * (0.7 * 0.3 / 500) ** 0.5)


def test_noise_depends_on_seed_and_question_and_on_nothing_else() -> None:
    tasks = many(20)
    one, same, other = noisy(tasks, seed=1), noisy(tasks, seed=1), noisy(tasks, seed=2)
    forwards = [one.decide(request(of)).probs for of in tasks]
    backwards = [same.decide(request(of)).probs for of in reversed(tasks)]
    assert forwards == list(reversed(backwards))
    assert forwards != [other.decide(request(of)).probs for of in tasks]


def test_noise_that_knows_no_truth_guesses() -> None:
    tasks = many(60)
    fake = Fake(settings("noise", accuracy=1.0), {})
    assert len({top(fake.decide(request(of))) for of in tasks}) == 3


def test_a_question_with_one_option_is_answered_with_it() -> None:
    question = Question.model_validate(
        {"type": "choice", "instructions": "Which?", "criteria": {"only": "one"}}
    )
    for accuracy in (0.0, 1.0):
        decision = Fake(settings("noise", accuracy=accuracy), {}).decide(
            Request("state", question, "fake")
        )
        assert decision.probs == {"only": 1.0}


def test_the_answer_key_names_no_task_and_leaves_out_what_has_no_truth() -> None:
    known, unknown = task("noul", id="secret-id"), task("choice", expected=None)
    key = answer_key([known, unknown])
    assert list(key.values()) == ["yes"]
    assert "secret-id" not in repr(key)


@pytest.mark.parametrize("mode", ["uniform", "script"])
def test_only_noise_is_told_the_answers(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text("[]")
    script = str(path) if mode == "script" else None
    fake = make_backend(settings(mode, script=script), IDENTITY, many(3))
    assert isinstance(fake, Fake)
    assert fake._answer_key == {}


# Script


def test_a_script_is_played_in_order_whatever_is_asked(tmp_path: Path) -> None:
    fake = scripted(
        tmp_path,
        [
            {"probs": {"no": 0.25, "yes": 0.75}},
            {"probs": {"anything": "at all"}},
            {"error": "rate_limited", "status_code": 429},
            {"error": "timeout"},
        ],
    )
    decisions = [fake.decide(request(of)) for of in many(5)]
    assert [decision.ok for decision in decisions] == [True, True, False, False, False]
    assert decisions[0].probs == {"no": 0.25, "yes": 0.75}
    assert decisions[1].probs == {"anything": "at all"}
    assert (decisions[2].error, decisions[2].status_code) == ("rate_limited", 429)
    assert (decisions[3].error, decisions[3].status_code) == ("timeout", None)
    assert decisions[4].error == "script_exhausted"


def test_opening_again_starts_the_script_again(tmp_path: Path) -> None:
    fake = scripted(tmp_path, [{"error": "first"}, {"error": "second"}])
    of = request(task("noul"))
    assert fake.decide(of).error == "first"
    fake.open(tmp_path)
    assert fake.decide(of).error == "first"


@pytest.mark.parametrize("script", [{}, "x", None, 5])
def test_a_script_is_a_list(tmp_path: Path, script: Any) -> None:
    with pytest.raises(InputError, match=r"script\.json: expected a list of answers"):
        scripted(tmp_path, script)


@pytest.mark.parametrize(
    "entry",
    [
        5,
        {},
        {"probs": [0.5, 0.5]},
        {"probs": None, "error": "x"},
        {"error": 5},
        {"error": "x", "status_code": "429"},
        {"error": "x", "status_code": True},
    ],
)
def test_an_answer_that_is_neither_is_refused_with_its_number(tmp_path: Path, entry: Any) -> None:
    with pytest.raises(InputError, match=r"^backend\.script: .*script\.json: answer 2: expected"):
        scripted(tmp_path, [{"probs": {}}, entry])


def test_a_script_that_is_not_there_or_not_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^backend\.script: .*nothing\.json: No such file"):
        Fake(settings("script", script=str(tmp_path / "nothing.json")), {})
    (tmp_path / "bad.json").write_text("[NaN]")
    with pytest.raises(InputError, match="not JSON: NaN is not a JSON number"):
        Fake(settings("script", script=str(tmp_path / "bad.json")), {})


# Description


def test_it_says_what_it_is() -> None:
    description = Fake(settings("noise", seed=7), {}).describe()
    assert description["model"] == "fake"
    assert (description["mode"], description["accuracy"], description["seed"]) == ("noise", 0.8, 7)
