"""A scripted server, and the provider connected to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jevexp.backends.llama_cpp import LlamaCpp
from tests.support.llama import backend_settings, model_identity
from tests.support.patience import patience_s
from tests.support.scripted_llama import ScriptedLlama, scripted_llama


@pytest.fixture
def server() -> Iterator[ScriptedLlama]:
    with scripted_llama() as running:
        yield running


@pytest.fixture
def backend(
    server: ScriptedLlama, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[LlamaCpp]:
    settings = backend_settings(base_url=server.url, request_timeout_s=patience_s(request))
    opened = LlamaCpp(settings, model_identity()).open(tmp_path)
    server.seen.clear()
    yield opened
    opened.close()
