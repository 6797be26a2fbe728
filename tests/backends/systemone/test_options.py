"""The options for System One services, and the experiment that compares providers."""

import pytest
from hydra._internal.utils import get_args_parser

from jevexp.cli.compose import compose_command
from jevexp.errors import InputError
from jevexp.settings import Settings, SystemOneBackend
from tests.support.compose import compose
from tests.support.systemone import LAYA, SPARROW, decisions_settings, settings


def sweep(*overrides: str) -> tuple[Settings, ...]:
    return compose_command(get_args_parser().parse_args(["-m", *overrides])).settings


def test_the_hosted_service_is_asked_over_https_with_its_key() -> None:
    backend = compose("backend=systemone", "model=jev_1_13").backend
    assert isinstance(backend, SystemOneBackend)
    assert backend == settings("https://api.typesafe.ai", key_env="TYPESAFE_API_KEY")


def test_started_servers_get_none_of_our_keys() -> None:
    own_keys = {"sparrow": None, "laya_serve": "LAYA_SERVE_API_KEY"}
    for option, command in (("sparrow", SPARROW), ("laya_serve", LAYA)):
        backend = compose(f"backend={option}").backend
        assert isinstance(backend, SystemOneBackend)
        server = {
            "command": list(command),
            "start_timeout_s": 60.0,
            "api_key_env": own_keys[option],
        }
        assert backend == settings(name=option, server=server)


@pytest.mark.parametrize(
    ("option", "address", "path", "envelope", "key_env"),
    [
        ("openrouter", "https://openrouter.ai", "/api/v1/systemone", None, "OPENROUTER_API_KEY"),
        ("vllm", "http://127.0.0.1:8000", "/v1/systemone", None, None),
        ("sglang", "http://127.0.0.1:30000", "/v1/systemone", None, None),
        ("litellm", "http://127.0.0.1:4000", "/v1/systemone", None, "LITELLM_API_KEY"),
        ("perplexity", "https://api.perplexity.ai", "/v1/decisions", None, "PERPLEXITY_API_KEY"),
        ("llama_cpp_systemone", "http://127.0.0.1:8080", "/v1/systemone", None, None),
        (
            "cloudflare",
            "https://api.cloudflare.com",
            "/client/v4/accounts/a1/ai/run/@cf/v/m",
            "/result",
            "CLOUDFLARE_API_TOKEN",
        ),
    ],
)
def test_gateways_and_servers_differ_in_where_they_take_the_wire(
    option: str, address: str, path: str, envelope: str | None, key_env: str | None
) -> None:
    where = [f"backend.path={path}"] if option == "cloudflare" else []
    backend = compose(f"backend={option}", *where).backend
    assert backend == settings(
        address,
        name=option,
        path=path,
        envelope=envelope,
        key_env=key_env,
        server={"command": None, "start_timeout_s": 60.0},
    )


def test_openai_s_wire_is_a_kind_of_its_own() -> None:
    backend = compose("backend=decisions").backend
    assert backend == decisions_settings("https://api.openai.com", key_env="OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("base_url", "path", "address"),
    [
        ("https://a.example", "/v1/systemone", "https://a.example"),
        ("https://a.example/", "/v1/systemone", "https://a.example"),
        ("https://a.example/v1", "/v1/systemone", "https://a.example"),
        ("https://a.example/v1/", "/v1/systemone", "https://a.example"),
        ("https://a.example/v1/systemone", "/v1/systemone", "https://a.example"),
        ("https://a.example/x/v1", "/v1/systemone", "https://a.example/x"),
        ("https://a.example/v1/v1", "/v1/systemone", "https://a.example/v1"),
        ("https://a.example/api", "/api/v1/systemone", "https://a.example"),
        ("https://a.example/api/v1", "/api/v1/systemone", "https://a.example"),
        ("https://a.example/systemone", "/v1/systemone", "https://a.example/systemone"),
        ("https://a.example/myv1", "/v1/systemone", "https://a.example/myv1"),
    ],
)
def test_an_address_may_end_in_the_path_or_in_its_beginning(
    base_url: str, path: str, address: str
) -> None:
    assert settings(base_url, path=path).address == address


@pytest.mark.parametrize("path", ["", "v1", "/", "/v1/", "/a//b", "/../b", "/a?b", "/a#b", "/a b"])
def test_a_path_is_names_with_a_slash_before_each(path: str) -> None:
    with pytest.raises(InputError, match=r"path: "):
        settings("https://a.example", path=path)


@pytest.mark.parametrize("pointer", ["", "result", "/", "/a/", "/a~2b", "/~"])
def test_an_envelope_is_a_json_pointer(pointer: str) -> None:
    with pytest.raises(InputError, match=r"envelope: "):
        settings("https://a.example", envelope=pointer)


def test_model_options_say_what_is_asked_for() -> None:
    asked = {
        "sparrow_nano": "sparrow-nano-general-v1.1",
        "jev_1_13": "jev-1.13.0",
        "jev_latest": "jev-latest",
        "laya_english": "laya-english",
    }
    assert {name: compose(f"model={name}").model.alias for name in asked} == asked


def test_providers_pairs_backends_with_models_on_the_same_tasks() -> None:
    runs = sweep("experiment=providers")
    assert [(run.backend.name, run.model.name) for run in runs] == [
        ("llama_cpp", "gemma3_270m_q4km"),
        ("sparrow", "sparrow_nano"),
        ("fake", "fake"),
    ]
    assert {(run.dataset.name, run.caps.name, run.pricing.name) for run in runs} == {
        ("demo", "unmetered", "local")
    }


def test_providers_takes_other_pairs_and_fields() -> None:
    (run,) = sweep("experiment=providers", "experiment/providers=sparrow_nano", "caps.limit=3")
    assert (run.model.name, run.caps.limit) == ("sparrow_nano", 3)
