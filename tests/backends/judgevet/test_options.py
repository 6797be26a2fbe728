"""What a configuration may say, and what typevet is told because of it."""

import re

import pytest

from jevexp.backends.judgevet.providers import environment
from jevexp.errors import InputError
from jevexp.settings import JudgevetBackend
from tests.support.compose import compose


def settings(*overrides: str) -> JudgevetBackend:
    backend = compose(*overrides, "model=unclaimed", "model.alias=m-1").backend
    assert isinstance(backend, JudgevetBackend)
    return backend


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (["backend.provider=factory"], "backend.factory: package.module:callable goes with"),
        (["backend.factory=a.b:c"], "backend.factory: package.module:callable goes with"),
        (
            ["backend.provider=factory", "backend.factory='os.system(1)'"],
            "backend.factory: expected package.module:callable",
        ),
        (["backend.base_url=null"], "backend.base_url: missing"),
        (["backend.base_url=http://example.org"], "backend.base_url: plain http reaches"),
        (["backend.base_url='https://u:p@example.org'"], "backend.base_url: expected http"),
        (
            ["backend.typevet.framing=chatml_thinking"],
            "backend.typevet.framing: only backend=llama_cpp",
        ),
        (
            ["backend=typevet", "backend.typevet.distributions=a.json"],
            "backend.typevet.distributions: only backend=fake",
        ),
    ],
)
def test_a_mistake_is_one_line_that_names_the_field(overrides: list[str], line: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(line)}") as raised:
        settings("backend=judgevet", *overrides)
    assert "\n" not in str(raised.value)
    assert "u:p" not in str(raised.value)


def test_a_llama_cpp_session_is_told_its_server_and_model() -> None:
    assert environment(settings("backend=typevet"), "m-1") == {
        "TYPEVET_BACKEND": "llama_cpp",
        "TYPEVET_LLAMA__BASE_URL": "http://127.0.0.1:8080",
        "TYPEVET_LLAMA__MULTIMODAL_MODEL": "m-1",
        "TYPEVET_LLAMA__TIMEOUT": "300.0",
    }


def test_with_a_framing_the_model_is_another_variable() -> None:
    framed = settings("backend=typevet", "backend.typevet.framing=chatml_thinking")
    assert environment(framed, "m-1")["TYPEVET_LLAMA__DEFAULT_MODEL"] == "m-1"


def test_a_vllm_session_is_told_its_server_and_model() -> None:
    vllm = settings("backend=typevet", "backend.typevet.backend=vllm")
    variables = environment(vllm, "m-1", "secret")
    assert variables == {
        "TYPEVET_BACKEND": "vllm",
        "TYPEVET_VLLM__BASE_URL": "http://127.0.0.1:8080",
        "TYPEVET_VLLM__MODEL": "m-1",
        "TYPEVET_VLLM__TIMEOUT": "300.0",
        "TYPEVET_VLLM__API_KEY": "secret",
    }


def test_a_fake_session_is_told_nothing_but_its_file() -> None:
    fake = settings(
        "backend=typevet", "backend.typevet.backend=fake", "backend.typevet.distributions=a.json"
    )
    assert environment(fake, "m-1") == {
        "TYPEVET_BACKEND": "fake",
        "TYPEVET_FAKE__DISTRIBUTIONS": "a.json",
    }
