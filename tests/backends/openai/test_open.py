"""What is found out before the first task, and what a person is told when it does not work."""

import sys
from pathlib import Path
from typing import Any

import pytest

from jevexp.backends.openai.chat import OpenAIChat
from jevexp.backends.openai.logprobs import OpenAILogprobs
from jevexp.errors import InputError
from tests.support.llama import model_identity, noul
from tests.support.openai import chat_settings, logprobs_settings
from tests.support.scripted_llama import Answer, ScriptedLlama
from tests.support.scripted_openai import (
    HOSTED,
    LLAMA,
    MODEL,
    SGLANG,
    VLLM,
    Flavour,
    completion,
    scripted_openai,
)

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def features(flavour: Flavour, folder: Path, **settings: Any) -> dict[str, Any]:
    with scripted_openai(flavour) as server:
        own = logprobs_settings(base_url=server.url, **settings)
        backend = OpenAILogprobs(own, model_identity()).open(folder)
        found: dict[str, Any] = backend.describe()["features"]
        backend.close()
        return found


def why_not(server: ScriptedLlama, folder: Path, **settings: Any) -> str:
    with pytest.raises(InputError) as raised:
        OpenAILogprobs(logprobs_settings(base_url=server.url, **settings), model_identity()).open(
            folder
        )
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(
    ("flavour", "found"),
    [
        (LLAMA, ("completions", "llama.cpp", "llama.cpp", "id", "probabilities", 64)),
        (VLLM, ("completions", "vllm", "vllm", "id", "sampling", 20)),
        (SGLANG, ("chat", "vllm", None, "text", "probabilities", 64)),
        (HOSTED, ("chat", None, None, "text", "untried", 20)),
        (
            Flavour("prompt only", "ignored", "text", most=7),
            ("chat", "vllm", None, "text", "ignored", 5),
        ),
    ],
    ids=["llama.cpp", "vLLM", "SGLang", "hosted", "ignores the bias"],
)
def test_features_are_measured(tmp_path: Path, flavour: Flavour, found: tuple[Any, ...]) -> None:
    names = (
        "route",
        "tokenize",
        "chat_template_rendering",
        "tokens",
        "logit_bias",
        "max_top_logprobs",
    )
    said = features(flavour, tmp_path)
    assert tuple(said[name] for name in names) == found


def test_a_bias_that_llama_cpp_s_probabilities_do_not_know_of_is_seen(tmp_path: Path) -> None:
    said = features(LLAMA, tmp_path, remove=("post_sampling_probs",))
    assert said["logit_bias"] == "sampling"


def test_a_forced_token_that_claims_to_be_certain_is_not_believed(tmp_path: Path) -> None:
    with scripted_openai(VLLM) as server:
        honest = server.answers[COMPLETIONS]
        assert not isinstance(honest, Answer)

        def boasting(body: Any) -> Answer:
            answer = honest(body)
            if answer.status == 200:
                answer.body["choices"][0]["logprobs"]["token_logprobs"] = [-1e-6]
            return answer

        server.answers[COMPLETIONS] = boasting
        backend = OpenAILogprobs(logprobs_settings(base_url=server.url), model_identity())
        assert backend.open(tmp_path).describe()["features"]["logit_bias"] == "ignored"
        backend.close()


def test_the_question_that_is_tried_is_no_task(tmp_path: Path) -> None:
    with scripted_openai(HOSTED) as server:
        backend = OpenAILogprobs(
            logprobs_settings(base_url=server.url), model_identity(alias="wanted")
        )
        backend.open(tmp_path).close()
        asked = [seen.body for seen in server.seen if seen.path == CHAT]
    assert {body["messages"][0]["content"] for body in asked} == {"Name one colour."}
    assert {body["model"] for body in asked} == {"wanted"}


@pytest.mark.parametrize(
    ("listed", "model"),
    [
        (["served"], "served"),
        (["other", "wanted"], "wanted"),
        (["one", "other"], None),
        ([], None),
    ],
)
def test_the_model_is_named_by_the_server_or_not_at_all(
    tmp_path: Path, server: ScriptedLlama, listed: list[str], model: str | None
) -> None:
    server.answers["/v1/models"] = Answer({"data": [{"id": name} for name in listed]})
    for backend in (
        OpenAIChat(chat_settings(base_url=server.url), model_identity(alias="wanted")),
        OpenAILogprobs(logprobs_settings(base_url=server.url), model_identity(alias="wanted")),
    ):
        assert backend.open(tmp_path).describe()["model"] == model
        assert backend.decide(noul()).model
        backend.close()


def test_a_gateway_that_lists_no_models_is_used_all_the_same(
    tmp_path: Path, server: ScriptedLlama
) -> None:
    server.answers["/v1/models"] = Answer({"detail": "Not Found"}, status=404)
    backend = OpenAIChat(chat_settings(base_url=server.url), model_identity()).open(tmp_path)
    assert backend.describe()["model"] is None
    assert backend.decide(noul()).ok
    backend.close()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer({}, status=401), "backend.key_env: {url} wants an API key (HTTP 401); set "),
        (Answer({}, status=403), "backend.key_env: {url} wants an API key (HTTP 403); set "),
        (Answer({}, status=307), "backend.base_url: {url} is not usable: HTTP 307; set "),
        (Answer({}, status=503), "backend.base_url: {url} is not usable: HTTP 503; set "),
        (Answer(drop=True), "backend.base_url: {url} is not usable: it closed the connection"),
        (Answer(hang=True), "backend.base_url: {url} is not usable: it does not answer in time; "),
    ],
)
def test_an_unusable_server_is_one_line(
    tmp_path: Path, server: ScriptedLlama, answer: Answer, message: str
) -> None:
    server.answers["/v1/models"] = answer
    said = why_not(server, tmp_path, timeout_s=0.3)
    assert said.startswith(message.format(url=server.url))


def test_a_server_without_logprobs_is_one_line(tmp_path: Path, server: ScriptedLlama) -> None:
    server.answers[CHAT] = Answer(completion("red"))
    assert why_not(server, tmp_path) == (
        f"backend.kind: {server.url} answers without log-probabilities; use backend=openai_chat, "
        "or another server"
    )


def test_a_server_that_refuses_the_request_is_one_line(
    tmp_path: Path, server: ScriptedLlama
) -> None:
    server.answers[CHAT] = Answer({"error": "unknown field"}, status=400)
    assert "(HTTP 400); check model.alias=tiny-f32, try" in why_not(server, tmp_path)
    # Each length of list is tried once.
    assert server.paths().count(CHAT) == 3


def test_completions_need_a_template(tmp_path: Path, server: ScriptedLlama) -> None:
    said = why_not(server, tmp_path, route="completions")
    assert said.startswith("backend.route: the server renders no chat template")


def test_a_server_without_completions_is_asked_by_chat(tmp_path: Path) -> None:
    with scripted_openai(LLAMA) as server:
        server.answers[COMPLETIONS] = Answer({}, status=404)
        backend = OpenAILogprobs(logprobs_settings(base_url=server.url), model_identity())
        assert backend.open(tmp_path).describe()["features"]["route"] == "chat"
        assert backend.decide(noul()).ok
        backend.close()


def test_a_key_that_is_not_set_is_one_line(tmp_path: Path, server: ScriptedLlama) -> None:
    with pytest.raises(InputError, match=r"^backend\.key_env: NO_SUCH_KEY is not set"):
        OpenAIChat(
            chat_settings(base_url=server.url, key_env="NO_SUCH_KEY"), model_identity()
        ).open(tmp_path)
    assert server.seen == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base_url": "http://127.0.0.1:1/v1"}, "base_url: ends in /v1, which is added"),
        ({"base_url": "http://127.0.0.1:1/v1/"}, "base_url: ends in /v1, which is added"),
        ({"options": {"stream": True}}, "options: stream is set here"),
        ({"remove": ("messages",)}, "remove: messages is set here"),
        ({"options": {"logit_bias": {}}}, "options: logit_bias is set here"),
    ],
)
def test_settings_that_could_not_work_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        logprobs_settings(**{"base_url": "http://127.0.0.1:1"} | changes)


def test_a_started_server_is_asked_and_ended(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(_SERVER)
    command = (sys.executable, str(script), "{port}")
    settings = chat_settings(server={"command": command, "start_timeout_s": 30.0})
    backend = OpenAIChat(settings, model_identity()).open(tmp_path)
    assert backend.server_pid is not None
    described = backend.describe()
    assert (described["managed"], described["base_url"]) == (True, "http://127.0.0.1")
    assert backend.decide(noul()).probs == {"no": 0.5, "yes": 0.5}
    backend.close()
    assert backend.server_pid is None


_SERVER = f'''
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer({{"data": [{{"id": "{MODEL}"}}]}})

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        text = json.dumps({{"probabilities": {{"no": 0.5, "yes": 0.5}}}})
        self.answer({{"choices": [{{"message": {{"content": text}}, "finish_reason": "stop"}}]}})

    def answer(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
'''
