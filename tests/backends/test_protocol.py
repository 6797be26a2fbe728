"""How many requests at once a provider takes, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from jevexp.backends.protocol import check_concurrency, make_backend
from jevexp.errors import InputError
from tests.support.compose import compose
from tests.support.provider import Provider


def backend(*overrides: str) -> Any:
    settings = compose(*overrides)
    return make_backend(settings.backend, settings.model, ())


def test_a_provider_that_says_nothing_takes_one_at_a_time() -> None:
    check_concurrency(Provider(), 1)
    with pytest.raises(InputError) as raised:
        check_concurrency(Provider(), 2)
    assert str(raised.value) == (
        "runner.concurrency: provider takes 1 request at a time, found 2; set runner.concurrency=1"
    )


@pytest.mark.parametrize(
    ("overrides", "most"),
    [
        (["backend=fake"], None),
        (["backend=systemone"], None),
        (["backend=openai_chat", "backend.base_url=http://127.0.0.1:1"], None),
        (["backend=openai_logprobs", "backend.base_url=http://127.0.0.1:1"], None),
        (["backend=python", "backend.factory='tests.support.own_model:function'"], 1),
        (["backend=llama_cpp", "backend.server.gguf=x.gguf", "backend.server.slots=3"], 3),
        (["backend=llama_cpp", "backend.server.base_url=http://127.0.0.1:1"], None),
    ],
)
def test_every_provider_says_how_many_it_takes(overrides: list[str], most: int | None) -> None:
    assert backend(*overrides).max_concurrency == most


def test_a_script_is_read_in_order(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text("[]")
    found = backend("backend=fake", "backend.mode=script", f"backend.script={script}")
    assert found.max_concurrency == 1


def test_fewer_slots_than_requests_are_refused() -> None:
    found = backend("backend=llama_cpp", "backend.server.gguf=x.gguf", "backend.server.slots=3")
    check_concurrency(found, 3)
    with pytest.raises(InputError, match=r"takes 3 requests at a time, found 4; set runner\.con"):
        check_concurrency(found, 4)
