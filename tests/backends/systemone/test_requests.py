"""One request a decision, sent once and to one place, whatever comes back."""

import json
import time
from pathlib import Path

import pytest

from jevexp.backends.systemone import SystemOne
from jevexp.core.decision import Request
from jevexp.core.json import dumps
from tests.backends.systemone.conftest import TASKS, Asked
from tests.contract.questions import UNANSWERABLE
from tests.support.llama import model_identity
from tests.support.scripted_llama import Answer, ScriptedLlama
from tests.support.systemone import ENDPOINT, MODEL, envelope, settings

KEY = "sk-secret-1234567890"
HEADER = "org-secret-0987654321"


def posts(service: ScriptedLlama) -> int:
    return sum(request.method == "POST" for request in service.seen)


@pytest.fixture
def keyed(service: ScriptedLlama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """A provider with a key and a further secret header."""
    monkeypatch.setenv("THE_KEY", KEY)
    monkeypatch.setenv("THE_ORG", HEADER)
    with_secrets = settings(service.url, key_env="THE_KEY", header_env={"X-Org": "THE_ORG"})
    return Asked(SystemOne(with_secrets, model_identity()).open(tmp_path), service)


def test_one_decision_is_one_request(asked: Asked) -> None:
    for kind in TASKS:
        assert asked.backend.decide(Request.of(TASKS[kind], "m-1")).ok
    assert posts(asked.service) == 3


def test_the_body_is_the_wire_and_nothing_else(asked: Asked) -> None:
    for kind, task in TASKS.items():
        request = Request.of(task, "m-1")
        asked.backend.decide(request)
        sent = asked.service.seen[-1]
        assert (sent.method, sent.path, sent.body) == ("POST", ENDPOINT, request.wire())
        assert set(sent.body) == {"state", "model", "questions"}
        assert set(sent.body["questions"]) == {"decision"}
        assert task.id not in dumps(sent.body)
        assert task.family not in dumps(sent.body), kind


def test_key_and_headers_are_sent_and_kept_nowhere(keyed: Asked) -> None:
    decision = keyed.answer("noul")
    sent = keyed.service.seen[-1]
    assert sent.headers["Authorization"] == f"Bearer {KEY}"
    assert sent.headers["X-Org"] == HEADER
    kept = dumps([keyed.backend.describe(), decision.request, decision.response])
    assert KEY not in kept
    assert HEADER not in kept
    keyed.backend.close()


@pytest.mark.parametrize("secret", [KEY, HEADER])
@pytest.mark.parametrize("status", [200, 401, 500])
def test_a_service_that_repeats_a_secret_does_not_get_it_into_the_evidence(
    keyed: Asked, status: int, secret: str
) -> None:
    body = envelope({"type": "noul", "noul": 0.5}) | {"x_headers": [f"Bearer {secret}"]}
    decision = keyed.reply("noul", Answer(body, status=status))
    assert not decision.ok
    assert decision.probs is None
    kept = dumps([decision.response, decision.model, decision.error, dict(decision.usage)])
    assert secret not in kept
    assert "[key]" in kept
    keyed.backend.close()


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    ("key", "spelled"),
    [
        ("sk-abc/def+123=", '"sk-abc\\/def+123="'),
        ("sk-abc/def+123=", '"\\u0073k-abc/def+123="'),
        ('sk-"quoted"-123', '"sk-\\"quoted\\"-123"'),
        ("sk-back\\slash-123", '"sk-back\\\\slash-123"'),
    ],
)
def test_a_repeated_secret_is_found_in_every_spelling_that_json_has(
    service: ScriptedLlama,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    key: str,
    spelled: str,
    status: int,
) -> None:
    monkeypatch.setenv("THE_KEY", key)
    asked = Asked(
        SystemOne(settings(service.url, key_env="THE_KEY"), model_identity()).open(tmp_path),
        service,
    )
    raw = json.dumps(envelope({"type": "noul", "noul": 0.5}) | {"x_key": "KEY"})
    decision = asked.reply("noul", Answer(raw.replace('"KEY"', spelled).encode(), status=status))
    assert not decision.ok
    kept = dumps(decision.response)
    assert "[key]" in kept
    assert not any(part in kept for part in (key, spelled[1:-1], "abc", "quoted", "slash"))
    asked.backend.close()


def test_a_body_that_utf_8_cannot_hold_is_a_bad_response(asked: Asked) -> None:
    raw = json.dumps(envelope({"type": "noul", "noul": 0.5}) | {"x": "\ud800"}).encode()
    decision = asked.reply("noul", Answer(raw))
    assert (decision.ok, decision.error, decision.status_code) == (False, "bad_response", 200)


def test_without_a_key_none_is_sent(asked: Asked) -> None:
    asked.answer("noul")
    assert "Authorization" not in asked.service.seen[-1].headers


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 429, 500, 502, 503, 529])
def test_a_status_is_carried_and_nothing_is_sent_again(asked: Asked, status: int) -> None:
    headers = {"Retry-After": "0"}
    decision = asked.reply("noul", Answer({"detail": "no"}, status=status, headers=headers))
    assert (decision.ok, decision.error, decision.status_code) == (False, "http_error", status)
    assert decision.response["body"] == {"detail": "no"}
    assert posts(asked.service) == 1


def test_a_redirect_is_not_followed(asked: Asked) -> None:
    elsewhere = {"Location": f"{asked.service.url}/elsewhere"}
    decision = asked.reply("noul", Answer({}, status=307, headers=elsewhere))
    assert (decision.error, decision.status_code) == ("http_error", 307)
    assert asked.service.paths()[-1] == ENDPOINT


def test_a_broken_connection_is_not_tried_again(asked: Asked) -> None:
    decision = asked.reply("noul", Answer(drop=True))
    assert (decision.ok, decision.error, decision.status_code) == (False, "connection_failed", None)
    assert posts(asked.service) == 1
    assert asked.answer("noul").ok


@pytest.mark.parametrize("answer", [Answer(hang=True), Answer({"x": "y" * 50}, drip_s=0.05)])
def test_a_service_that_takes_too_long_is_a_timeout(
    service: ScriptedLlama, tmp_path: Path, answer: Answer
) -> None:
    asked = Asked(
        SystemOne(settings(service.url, timeout_s=0.3), model_identity()).open(tmp_path), service
    )
    started = time.monotonic()
    decision = asked.reply("noul", answer)
    assert time.monotonic() - started < 2
    assert (decision.ok, decision.error, decision.status_code) == (False, "timeout", None)
    assert posts(service) == 1
    asked.backend.close()


def test_an_answer_without_end_is_cut_off(asked: Asked) -> None:
    decision = asked.reply("noul", Answer(b"x" * (9 << 20)))
    assert (decision.error, decision.status_code) == ("response_too_large", 200)
    assert len(decision.response["body"]) < 3000


@pytest.mark.parametrize(
    "raw", [b"", b"<html>", b")]}'\n{}", b"[]", b'"yes"', b"\xff\xfe", b"null"]
)
def test_a_success_that_is_no_json_object_is_a_bad_response(asked: Asked, raw: bytes) -> None:
    decision = asked.reply("noul", Answer(raw))
    assert (decision.ok, decision.error, decision.status_code) == (False, "bad_response", 200)


def test_a_failure_names_who_was_asked(asked: Asked) -> None:
    assert asked.reply("noul", Answer(status=500)).model == "m-1"


def test_a_bad_answer_names_who_gave_it(asked: Asked) -> None:
    assert asked.answer("noul", noul=7).model == MODEL


def test_a_choice_without_criteria_is_left_to_the_service(asked: Asked) -> None:
    request = Request.of(UNANSWERABLE, "m-1")
    assert asked.backend.decide(request).status_code == 422

    labels = {"type": "choice", "probabilities": {"a": 0.25, "b": 0.75}}
    asked.service.answers[ENDPOINT] = Answer(envelope(labels))
    assert asked.backend.decide(request).probs == labels["probabilities"]
