"""Where the cache folder is; its users' own tests say that they all use it."""

from pathlib import Path

import platformdirs
import pytest

from jevexp.store.cache import cache_folder


@pytest.mark.parametrize(
    ("chosen", "folder"),
    [("~/x", "HOME/x"), ("~", "HOME"), ("/tmp/x", "/tmp/x"), ("x/~y", "x/~y"), ("x", "x")],
)
def test_a_tilde_at_the_start_is_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, folder: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("JEVEXP_CACHE", chosen)

    assert cache_folder() == Path(folder.replace("HOME", str(tmp_path)))


def test_without_a_choice_it_is_the_platforms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JEVEXP_CACHE")
    assert cache_folder() == platformdirs.user_cache_path("jevexp")
