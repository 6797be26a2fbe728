"""Every test has a cache of its own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of it, which is not there yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("JEVEXP_CACHE", str(folder))
    return folder
