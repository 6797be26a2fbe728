"""A managed server that cannot be started: what is said, and that nothing is left running."""

from pathlib import Path

import pytest

from jevexp.backends.llama_cpp import server
from jevexp.backends.llama_cpp.server import ManagedServer
from jevexp.backends.server import last_words
from jevexp.errors import InputError
from tests.support.llama import backend_settings

SETTINGS = backend_settings().server


def test_a_missing_library_is_named_with_its_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'jevexp\[local\]'"):
        ManagedServer(tmp_path / "m.gguf", "m", SETTINGS).start(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: object())
    with pytest.raises(InputError, match=r"no such file: .*m\.gguf"):
        ManagedServer(tmp_path / "m.gguf", "m", SETTINGS).start(tmp_path)


def test_stopping_what_never_ran_is_harmless(tmp_path: Path) -> None:
    never_ran = ManagedServer(tmp_path / "m.gguf", "m", SETTINGS)
    never_ran.stop()
    assert never_ran.pid is None


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("", "it wrote nothing"),
        (
            "0.00.001 I srv init\n0.00.002 E gguf: bad magic\n0.00.003 E gave up\n",
            "gguf: bad magic",
        ),
        ("Traceback:\n  File x\nValueError: oh no\n\n", "ValueError: oh no"),
        ("x" * 900, "x" * 300),
    ],
)
def test_a_log_s_last_words_are_its_first_error(tmp_path: Path, log: str, words: str) -> None:
    earlier = "0.00.001 E an earlier server's error\n"
    (tmp_path / "server.log").write_text(earlier + log)
    assert last_words(tmp_path / "server.log", len(earlier)) == words
