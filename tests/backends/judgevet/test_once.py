"""Every request is sent once; what the packages would do by themselves is shown beside it."""

import time
from typing import Any

import pytest

from jevexp.core.decision import Request
from tests.backends.judgevet.conftest import Open
from tests.support.bridge import need_bridge
from tests.support.scripted_llama import Answer, ScriptedLlama, scripted_llama
from tests.support.tasks import task

REQUEST = Request.of(task("choice"), "m-1")
HTTP = ("backend=judgevet", "backend.key_env=null")
LLAMA = ("backend=typevet", "backend.typevet.framing=chatml_thinking")
VLLM = ("backend=typevet", "backend.typevet.backend=vllm")
# What answers a decision, and what is asked before it.
ENDPOINTS = [
    pytest.param(HTTP, "/v1/systemone", [], id="http"),
    pytest.param(LLAMA, "/tokenize", [], id="llama_cpp, tokens"),
    pytest.param(LLAMA, "/completion", ["/tokenize"] * 3, id="llama_cpp, answer"),
    pytest.param(VLLM, "/tokenize", [], id="vllm, tokens"),
    pytest.param(VLLM, "/v1/chat/completions", ["/tokenize"] * 3, id="vllm, answer"),
]
DROPPED = Answer(drop=True)


def prepare(server: ScriptedLlama) -> None:
    """Answer what a session asks before the question; each symbol is a token of its own."""
    server.answers["/props?model=m-1"] = Answer({"modalities": {"vision": False}})
    server.answers["/tokenize"] = lambda body: Answer(
        {"tokens": [sum(map(ord, body.get("content") or body.get("prompt")))]}
    )


def outcome(opened: Open, overrides: tuple[str, ...], path: str, answer: Answer) -> Any:
    """The decision, and the paths that it asked for."""
    with scripted_llama() as server:
        prepare(server)
        backend = opened(*overrides, f"backend.base_url={server.url}", "backend.timeout_s=1.0")
        server.answers[path] = answer
        server.seen.clear()
        return backend.decide(REQUEST), server.paths()


@pytest.mark.parametrize(("overrides", "path", "before"), ENDPOINTS)
def test_a_dropped_connection_is_one_request(
    opened: Open, overrides: tuple[str, ...], path: str, before: list[str]
) -> None:
    decision, paths = outcome(opened, overrides, path, DROPPED)
    assert (decision.ok, decision.error, decision.status_code) == (False, "connection_failed", None)
    assert paths == [*before, path]


@pytest.mark.parametrize("status", [401, 403, 422, 429, 500, 503])
@pytest.mark.parametrize(("overrides", "path", "before"), ENDPOINTS)
def test_an_error_status_is_one_request_and_carried(
    opened: Open, overrides: tuple[str, ...], path: str, before: list[str], status: int
) -> None:
    decision, paths = outcome(opened, overrides, path, Answer({}, status=status))
    assert (decision.ok, decision.error, decision.status_code) == (False, "http_error", status)
    assert paths == [*before, path]


@pytest.mark.parametrize(("overrides", "path", "before"), ENDPOINTS)
def test_a_silent_server_is_a_timeout(
    opened: Open, overrides: tuple[str, ...], path: str, before: list[str]
) -> None:
    decision, paths = outcome(opened, overrides, path, Answer(hang=True))
    assert (decision.ok, decision.error, decision.status_code) == (False, "timeout", None)
    assert paths == [*before, path]


def test_a_slow_body_is_bounded_as_a_whole(opened: Open) -> None:
    started = time.monotonic()
    decision, _ = outcome(opened, HTTP, "/v1/systemone", Answer({"a": "b" * 100}, drip_s=0.2))
    assert decision.error == "timeout"
    assert time.monotonic() - started < 5


def test_a_redirect_is_not_followed(opened: Open) -> None:
    away = Answer({}, status=307, headers={"Location": "/elsewhere"})
    decision, paths = outcome(opened, HTTP, "/v1/systemone", away)
    assert (decision.error, decision.status_code) == ("http_error", 307)
    assert paths == ["/v1/systemone"]


@pytest.mark.parametrize(
    ("error", "code"),
    [({"code": 429, "message": "slow down"}, "error_body_429"), ("no", "error_body")],
)
def test_an_error_under_200_has_a_code_of_its_own(opened: Open, error: Any, code: str) -> None:
    decision, _ = outcome(opened, HTTP, "/v1/systemone", Answer({"error": error}))
    assert (decision.ok, decision.error, decision.status_code) == (False, code, 200)
    assert decision.response["body"] == {"error": error}


@pytest.mark.parametrize(
    "body",
    [b"", b"no JSON", b"null", b"[1]", b"[" * 100_000, b'{"a":1}'.decode().encode("utf-16")],
    ids=["nothing", "text", "null", "list", "deep", "utf-16"],
)
def test_a_body_that_is_no_answer_is_kept(opened: Open, body: bytes) -> None:
    decision, _ = outcome(opened, HTTP, "/v1/systemone", Answer(body))
    assert (decision.ok, decision.error, decision.status_code) == (False, "bad_response", 200)
    assert "body" in decision.response


def test_a_server_that_is_gone_before_the_session_is_an_input_error(opened: Open) -> None:
    from jevexp.errors import InputError

    with scripted_llama() as server:
        url = server.url
    with pytest.raises(InputError, match=r"is not usable: no server answers there$"):
        opened(*LLAMA, f"backend.base_url={url}")


# What is switched off


def test_judgevet_alone_would_ask_three_times() -> None:
    need_bridge()
    from judgevet import HTTPSystemOneAdapter, JevServiceError, Noul

    with scripted_llama() as server:
        server.answers["/v1/systemone"] = Answer({}, status=503)
        with (
            HTTPSystemOneAdapter(api_key="none", base_url=server.url) as port,
            pytest.raises(JevServiceError),
        ):
            port.system_one("", {"q": Noul()}, "m")
        assert len(server.seen) == 3


def test_typevet_alone_would_ask_twice() -> None:
    need_bridge()
    from typevet.adapters.inbound.backend_settings import open_judgment
    from typevet.adapters.outbound.gemma import ChatMLThinkingFraming
    from typevet.domain.errors import TransportError
    from typevet.domain.judgment_questions import Noul

    with scripted_llama() as server:
        prepare(server)
        variables = {
            "TYPEVET_BACKEND": "llama_cpp",
            "TYPEVET_LLAMA__BASE_URL": server.url,
            "TYPEVET_LLAMA__DEFAULT_MODEL": "m-1",
        }
        with open_judgment(variables, framing=ChatMLThinkingFraming()) as session:
            server.answers["/tokenize"] = DROPPED
            server.seen.clear()
            with pytest.raises(TransportError):
                session.port.judge("", {"q": Noul()}, "m-1")
        assert server.paths() == ["/tokenize"] * 2
