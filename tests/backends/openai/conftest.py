"""Providers on scripted servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jevexp.backends.openai.chat import OpenAIChat
from tests.support.llama import model_identity
from tests.support.openai import chat_settings
from tests.support.patience import patience_s
from tests.support.scripted_llama import ScriptedLlama
from tests.support.scripted_openai import HOSTED, scripted_openai

KEY = "sk-0123456789abcdef"


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TEST_KEY", KEY)
    return KEY


@pytest.fixture
def server() -> Iterator[ScriptedLlama]:
    with scripted_openai(HOSTED) as running:
        yield running


@pytest.fixture
def chat(
    server: ScriptedLlama, key: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[OpenAIChat]:
    timeout_s = patience_s(request)
    settings = chat_settings(base_url=server.url, key_env="TEST_KEY", timeout_s=timeout_s)
    opened = OpenAIChat(settings, model_identity()).open(tmp_path)
    server.seen.clear()
    yield opened
    opened.close()
