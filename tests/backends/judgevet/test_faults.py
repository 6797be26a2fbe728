"""judgevet's own adapter on a server with every fault that a System One server can have."""

from pathlib import Path
from typing import Any

import pytest

from jevexp.core.decision import Decision, Request
from jevexp.harness.scoring import score
from tests.backends.judgevet.conftest import Open
from tests.support.bridge import need_bridge
from tests.support.cli import jevexp, only_run
from tests.support.tasks import task

mock = pytest.importorskip("jevcompat.mock", reason="jevcompat is not installed")

TASKS = [task("noul"), task("choice"), task("score")]
KEY = "a-key-of-some-length"
ANSWERED = (True, None, 200)
REFUSED = (False, "bad_response", 200)
# By fault, what becomes of a noul, a choice and a score; all others are answered.
OUTCOMES: dict[str, Any] = {
    "wrong-route": [(False, "http_error", 404)] * 3,
    "xssi-200": [REFUSED] * 3,
    "auth-rejects-header": [(False, "http_error", 401)] * 3,
    "auth-x-api-key": [(False, "http_error", 403)] * 3,
    "reject-jev-latest": [(False, "http_error", 404)] * 3,
    "no-usage": [REFUSED] * 3,
    "float-usage": [REFUSED] * 3,
    "extra-answer": [(False, "bad_answer_id", 200)] * 3,
    "boolean-type": [REFUSED, ANSWERED, ANSWERED],
    "noul-range": [REFUSED, ANSWERED, ANSWERED],
    "choice-no-confidence": [ANSWERED, REFUSED, ANSWERED],
    "choice-key-case": [ANSWERED, REFUSED, ANSWERED],
    "choice-sum": [ANSWERED, REFUSED, ANSWERED],
    "score-no-legend": [ANSWERED, ANSWERED, REFUSED],
    "legend-1-based": [ANSWERED, ANSWERED, REFUSED],
    "score-keys-1-based": [ANSWERED, ANSWERED, REFUSED],
    "score-sum": [ANSWERED, ANSWERED, REFUSED],
    "confidence-over": [ANSWERED, REFUSED, REFUSED],
}
# Refused before they are counted.
UNCOUNTED = {"wrong-route", "auth-rejects-header", "auth-x-api-key"}


def ask(opened: Open, url: str) -> list[Decision]:
    backend = opened(f"backend.base_url={url}", "backend.key_env=KEY", "model.alias=jev-latest")
    return [backend.decide(Request.of(one, "jev-latest")) for one in TASKS]


@pytest.mark.parametrize("fault", [None, *mock.FAULTS])
def test_each_fault_has_its_outcome_and_one_request_a_task(
    fault: str | None, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", KEY)
    config = mock.MockConfig(
        key=None if fault == "auth-rejects-header" else KEY,
        faults=frozenset([fault] if fault else []),
    )
    with mock.Running(config) as server:
        decisions = ask(opened, server.url)
    found = [(one.ok, one.error, one.status_code) for one in decisions]
    assert found == OUTCOMES.get(fault or "", [ANSWERED] * 3)
    assert config.requests == (0 if fault in UNCOUNTED else 3)
    for of, decision in zip(TASKS, decisions, strict=True):
        verdict = score(of, decision)
        assert verdict.valid == decision.ok
        assert (decision.probs is None) == (not decision.ok)


def test_a_server_that_is_always_busy_is_asked_once_a_task(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", KEY)
    config = mock.MockConfig(busy_every=1)
    with mock.Running(config) as server:
        decisions = ask(opened, server.url)
    assert [(one.error, one.status_code) for one in decisions] == [("http_error", 429)] * 3
    assert config.requests == 3


def test_the_answering_model_is_the_one_that_the_server_names(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", KEY)
    with mock.Running(mock.MockConfig()) as server:
        decisions = ask(opened, server.url)
    assert {one.model for one in decisions} == {"jevcompat-mock-0.1"}
    assert all(one.usage["input_tokens"] > 0 for one in decisions)


def test_a_whole_run_asks_once_a_task_and_keeps_the_key_to_itself(tmp_path: Path) -> None:
    need_bridge()
    config = mock.MockConfig(key=KEY)
    with mock.Running(config) as server:
        done = jevexp(
            "backend=judgevet",
            f"backend.base_url={server.url}",
            "backend.key_env=KEY",
            "model=unclaimed",
            "model.alias=jev-latest",
            "dataset=demo",
            "identity=record",
            "tracking=none",
            cwd=tmp_path,
            KEY=KEY,
        )
    assert done.status == 0, done.err
    assert config.requests == 48
    run = only_run(tmp_path / "outputs")
    assert len((run / "results.jsonl").read_text().splitlines()) == 48
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    assert KEY not in done.out + done.err
