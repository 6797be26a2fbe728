"""The options for System One services, and the experiment that compares providers."""

from hydra._internal.utils import get_args_parser

from jevexp.cli.compose import compose_command
from jevexp.settings import Settings, SystemOneBackend
from tests.support.compose import compose
from tests.support.systemone import LAYA, SPARROW, settings


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
