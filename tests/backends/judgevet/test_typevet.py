"""Typevet sessions: what they are told, and what they answer."""

import json
from pathlib import Path

import pytest

from jevexp.core.decision import Request
from jevexp.errors import InputError
from tests.backends.judgevet.conftest import Open
from tests.backends.judgevet.test_once import LLAMA, VLLM, prepare
from tests.support.llama import choice
from tests.support.scripted_llama import Answer, scripted_llama
from tests.support.tasks import LABELS, task

FAKE = ("backend=typevet", "backend.typevet.backend=fake")
KEY = "a-key-of-some-length"


def test_the_fake_gives_every_option_the_same(opened: Open) -> None:
    backend = opened(*FAKE)
    assert backend.decide(Request.of(task("noul"), "m-1")).probs == {"no": 0.5, "yes": 0.5}
    assert backend.decide(Request.of(task("choice"), "m-1")).probs == dict.fromkeys(LABELS, 1 / 3)
    score = backend.decide(Request.of(task("score"), "m-1"))
    assert score.probs == {"0": 0.25, "1": 0.25, "2": 0.25, "3": 0.25}
    assert (score.model, score.status_code) == ("fake", None)


def test_another_session_is_another_readout(opened: Open) -> None:
    with scripted_llama() as server:
        prepare(server)
        url = f"backend.base_url={server.url}"
        readouts = [
            opened(*overrides, url).describe()["readout"] for overrides in (FAKE, LLAMA, VLLM)
        ]
    assert [one["session"] for one in readouts] == ["fake", "llama_cpp", "vllm"]
    assert [one["framing"] for one in readouts] == [None, "chatml_thinking", None]
    assert len({one["version"] for one in readouts}) == 1


def test_a_llama_cpp_server_behind_a_session_says_which_model_it_serves(opened: Open) -> None:
    entry = {"id": "kev", "owned_by": "llamacpp",
             "architecture": {"output_modalities": ["decisions"]}}  # fmt: skip
    with scripted_llama() as server:
        prepare(server)
        server.answers["/v1/models"] = Answer({"data": [entry]})
        server.answers["/props"] = Answer({"model_path": "/models/kev.gguf", "total_slots": 1})
        found, fake = opened(*LLAMA, f"backend.base_url={server.url}").describe(), opened(*FAKE)
    assert (found["kind"], found["model"]) == ("judgevet", "kev")
    assert found["model_path"] == "/models/kev.gguf"
    assert found["warnings"] == [
        "a decision model, asked by typevet: another prompt, and no temperatures"
    ]
    assert "model_path" not in fake.describe()


def test_the_fake_answers_what_its_file_says(opened: Open, tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    file.write_text(json.dumps({"decision": {"0": 1, "1": 1, "2": 6, "3": 0}}))
    backend = opened(*FAKE, f"backend.typevet.distributions={file}")
    decision = backend.decide(Request.of(task("score"), "m-1"))
    assert decision.probs == {"0": 0.125, "1": 0.125, "2": 0.75, "3": 0.0}


def test_a_file_that_cannot_be_read_is_an_input_error(opened: Open) -> None:
    with pytest.raises(InputError, match=r"^backend\.typevet: TYPEVET_FAKE__DISTRIBUTIONS names"):
        opened(*FAKE, "backend.typevet.distributions=no-such-file.json")


def test_more_than_twenty_four_options_are_not_sent(opened: Open) -> None:
    backend = opened(*FAKE)
    assert backend.decide(choice(24)).ok
    decision = backend.decide(choice(25))
    assert (decision.ok, decision.error) == (False, "too_many_options")


@pytest.mark.parametrize(
    ("overrides", "prefix"), [(LLAMA, "TYPEVET_LLAMA__"), (VLLM, "TYPEVET_VLLM__")]
)
def test_a_key_is_sent_and_shown_nowhere(
    opened: Open, monkeypatch: pytest.MonkeyPatch, overrides: tuple[str, ...], prefix: str
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with scripted_llama() as server:
        prepare(server)
        server.answers["/tokenize"] = Answer({"error": f"the key {KEY} is wrong"}, status=401)
        backend = opened(*overrides, f"backend.base_url={server.url}", "backend.key_env=MY_KEY")
        decision = backend.decide(Request.of(task("noul"), "m-1"))
        assert server.seen[-1].headers["Authorization"] == f"Bearer {KEY}"
    assert (decision.error, decision.status_code) == ("http_error", 401)
    described = backend.describe()
    assert described["environment"][f"{prefix}BASE_URL"] == server.url
    assert KEY not in repr(described) + repr(decision)


@pytest.mark.parametrize("overrides", [LLAMA, VLLM])
def test_the_persons_own_variables_are_not_read(
    opened: Open, monkeypatch: pytest.MonkeyPatch, overrides: tuple[str, ...]
) -> None:
    for prefix in ("TYPEVET_LLAMA__", "TYPEVET_VLLM__"):
        monkeypatch.setenv(f"{prefix}API_KEY", KEY)
        monkeypatch.setenv(f"{prefix}HEADERS", json.dumps({"X-Mine": KEY}))
        monkeypatch.setenv(f"{prefix}BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("TYPEVET_BACKEND", "fake")
    with scripted_llama() as server:
        prepare(server)
        backend = opened(*overrides, f"backend.base_url={server.url}")
        backend.decide(Request.of(task("noul"), "m-1"))
        assert server.seen
        assert KEY not in repr(server.seen)


def test_a_model_that_the_framing_does_not_fit_is_an_input_error(opened: Open) -> None:
    with scripted_llama() as server:
        prepare(server)
        with pytest.raises(InputError, match=r"^backend\.typevet: expected NATIVE_GEMMA4_TURN"):
            opened("backend=typevet", f"backend.base_url={server.url}")


def test_a_key_that_is_wanted_is_asked_for(opened: Open) -> None:
    with scripted_llama() as server:
        server.answers["/props?model=m-1"] = Answer({}, status=401)
        with pytest.raises(InputError, match=r"HTTP 401; set backend\.key_env to the environment"):
            opened(*LLAMA, f"backend.base_url={server.url}")
