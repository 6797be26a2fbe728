"""Which service is asked, and what is known about it before the first question."""

import sys
from pathlib import Path
from typing import Any

import pytest

from jevexp.backends.systemone import SystemOne, facts
from jevexp.backends.transport import Transport
from jevexp.errors import InputError
from tests.backends.server.started import PROGRAM, gone, pids
from tests.backends.systemone.conftest import TASKS
from tests.support.llama import model_identity
from tests.support.scripted_llama import Answer, ScriptedLlama
from tests.support.systemone import ENDPOINT, settings


def described(service: ScriptedLlama, directory: Path) -> dict[str, Any]:
    backend = SystemOne(settings(service.url), model_identity()).open(directory)
    found = backend.describe()
    backend.close()
    return found


def why_not(directory: Path, base_url: str | None = None, **fields: Any) -> str:
    """The line that refuses to open a provider."""
    backend = SystemOne(settings(base_url, **fields), model_identity())
    with pytest.raises(InputError) as raised:
        backend.open(directory)
    assert "\n" not in str(raised.value)
    assert backend.server_pid is None
    return str(raised.value)


def test_a_service_that_hides_everything_is_fine(service: ScriptedLlama, tmp_path: Path) -> None:
    assert described(service, tmp_path) == {
        "kind": "systemone",
        "managed": False,
        "base_url": service.url,
        "model": None,
        "version": None,
        "models": None,
    }
    # A gateway asks every model that it has for `/health`, and that costs money.
    assert service.paths() == ["/v1/models"]


@pytest.mark.parametrize(
    ("path", "models"),
    [("/api/v1/systemone", "/api/v1/models"), ("/ai/run/@cf/v/m", "/ai/run/@cf/v/models")],
)
def test_models_are_listed_beside_the_route(
    service: ScriptedLlama, tmp_path: Path, path: str, models: str
) -> None:
    backend = SystemOne(settings(service.url, path=path), model_identity()).open(tmp_path)
    backend.close()
    assert service.paths() == [models]


LLAMA = {"id": "kev", "owned_by": "llamacpp", "meta": {"n_params": 7, "n_vocab": 3},
         "architecture": {"output_modalities": ["decisions"]}}  # fmt: skip
PROPS = {
    "model_path": "/models/kev.gguf",
    "model_alias": "kev",
    "build_info": "b9",
    "total_slots": 4,
}


def test_a_llama_cpp_server_says_which_model_it_serves(
    service: ScriptedLlama, tmp_path: Path
) -> None:
    service.answers |= {"/v1/models": Answer({"data": [LLAMA]}), "/props": Answer(PROPS)}
    found = described(service, tmp_path)
    assert (found["kind"], found["model"], found["models"]) == ("systemone", "kev", ["kev"])
    assert (found["model_path"], found["n_params"]) == ("/models/kev.gguf", 7)
    assert found["output_modalities"] == ["decisions"]
    assert "backend=llama_cpp empties its slots" in found["warnings"][0]


def test_of_a_router_s_models_the_one_that_is_asked_for_is_described(
    service: ScriptedLlama, tmp_path: Path
) -> None:
    alias = model_identity().alias
    service.answers |= {
        "/v1/models": Answer({"data": [LLAMA, LLAMA | {"id": alias}]}),
        f"/props?model={alias}": Answer(PROPS),
    }
    assert described(service, tmp_path)["model"] == alias
    service.answers["/v1/models"] = Answer({"data": [LLAMA, LLAMA | {"id": "other"}]})
    assert "model_path" not in described(service, tmp_path)


@pytest.mark.parametrize(
    ("entry", "props", "asked"),
    [
        (LLAMA | {"owned_by": "openai"}, PROPS, False),
        (LLAMA, {"detail": "Not Found"}, True),
    ],
)
def test_what_only_looks_like_a_llama_cpp_server_is_none(
    service: ScriptedLlama, tmp_path: Path, entry: Any, props: Any, asked: bool
) -> None:
    service.answers |= {"/v1/models": Answer({"data": [entry]}), "/props": Answer(props)}
    found = described(service, tmp_path)
    assert (found["model"], found["models"]) == (None, ["kev"])
    assert "build_info" not in found
    assert ("/props" in service.paths()) == asked


@pytest.mark.parametrize("status", [401, 403, 405, 429, 500, 503])
def test_other_refusals_there_are_left_to_the_first_question(
    service: ScriptedLlama, tmp_path: Path, status: int
) -> None:
    service.answers |= dict.fromkeys(("/health", "/v1/models"), Answer({}, status=status))
    assert described(service, tmp_path)["model"] is None


def started(service: ScriptedLlama) -> dict[str, Any]:
    """What is found out of a server that was started here."""
    transport = Transport(service.url, None, 5.0, 5.0)
    found = facts(transport, service.url, ENDPOINT, "m-1", started=True)
    transport.close()
    return found


def test_a_model_named_by_a_started_server_s_health_is_the_session_s(
    service: ScriptedLlama,
) -> None:
    service.answers["/health"] = Answer({"status": "ok", "model": "m-2", "version": "0.2.0"})
    found = started(service)
    assert (found["model"], found["version"]) == ("m-2", "0.2.0")


@pytest.mark.parametrize(
    "health", [{"model": 7}, {"model": ""}, {"model": {"name": "m"}}, [], "ok"]
)
def test_health_that_names_none_is_no_statement(service: ScriptedLlama, health: Any) -> None:
    service.answers["/health"] = Answer(health)
    assert started(service)["model"] is None


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ({"models": [{"name": "jev-latest"}, {"name": "jev-1"}]}, ["jev-1", "jev-latest"]),
        ({"object": "list", "data": [{"id": "m"}, {"id": "m"}]}, ["m"]),
        ({"models": [{"name": 1}, "m", None], "data": "m"}, None),
        ({"models": {}}, None),
        ([], None),
    ],
)
def test_listed_names_are_kept_and_name_nobody(
    service: ScriptedLlama, tmp_path: Path, listed: Any, names: Any
) -> None:
    service.answers["/v1/models"] = Answer(listed)
    found = described(service, tmp_path)
    assert (found["models"], found["model"]) == (names, None)


def test_nobody_there_is_one_line(tmp_path: Path) -> None:
    assert why_not(tmp_path, "http://127.0.0.1:9") == (
        "backend.base_url: http://127.0.0.1:9 is not usable: no server answers there "
        "(Connection refused); start a "
        "server there, or set backend.base_url=URL"
    )


def test_a_silent_service_is_one_line(service: ScriptedLlama, tmp_path: Path) -> None:
    service.answers["/v1/models"] = Answer(hang=True)
    assert "it does not answer in time" in why_not(tmp_path, service.url, timeout_s=0.2)


@pytest.mark.parametrize(
    "fields", [{"key_env": "NOT_SET"}, {"header_env": {"X-Org": "NOT_SET"}}], ids=str
)
def test_a_secret_that_is_not_set_is_one_line(
    service: ScriptedLlama, tmp_path: Path, fields: dict[str, Any]
) -> None:
    reason = why_not(tmp_path, service.url, **fields)
    assert reason.startswith(f"backend.{next(iter(fields))}")
    assert "NOT_SET is not set" in reason
    assert service.seen == []


def test_asking_before_opening_is_a_mistake(service: ScriptedLlama) -> None:
    from jevexp.core.decision import Request

    with pytest.raises(RuntimeError):
        SystemOne(settings(service.url), model_identity()).decide(Request.of(TASKS["noul"], "m-1"))


def test_a_started_server_is_described_without_its_port_and_ends_with_close(
    tmp_path: Path,
) -> None:
    backend = SystemOne(
        settings(command=[sys.executable, str(PROGRAM), "{port}"]), model_identity()
    )
    backend.open(tmp_path)
    found = pids(tmp_path)
    assert (backend.describe()["managed"], backend.describe()["base_url"]) == (
        True,
        "http://127.0.0.1",
    )
    backend.close()
    assert gone(*found)


def test_a_started_server_that_gives_up_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), "{port}", "says=no weights"]
    assert "ended while starting: no weights" in why_not(tmp_path, command=command)


# Settings


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"base_url": None}, "base_url: missing; give"),
        (
            {"base_url": "https://a.example", "command": ["serve", "{port}"]},
            "base_url: give either",
        ),
        ({"command": ["serve", "{port}"], "key_env": "KEY"}, "key_env: a server that is started"),
        (
            {"command": ["serve", "{port}"], "header_env": {"X-A": "A"}},
            "key_env: a server that is started",
        ),
        ({"command": []}, "server.command: holds no {port}"),
        ({"base_url": "http://a.example"}, "base_url: plain http reaches another machine"),
        ({"base_url": "https://user:pass@a.example"}, "base_url: expected http"),
        ({"base_url": "https://a.example?key=1"}, "base_url: expected http"),
        ({"base_url": "ftp://a.example"}, "base_url: expected http"),
        ({"base_url": "https://a.example", "key_env": "sk-1234"}, "key_env: "),
        ({"base_url": "https://a.example", "header_env": {"X A": "A"}}, "header_env."),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(fields: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError) as raised:
        settings(**fields)
    assert str(raised.value).lstrip(".").startswith(line)
    assert "pass" not in str(raised.value)


def test_plain_http_to_another_machine_can_be_allowed() -> None:
    assert settings("http://a.example", allow_http=True).allow_http
