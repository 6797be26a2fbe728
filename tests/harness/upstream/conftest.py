"""Every test imports the package anew, from where that test put it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jevexp.harness.upstream_package import Location, Package, load
from jevexp.settings import PINNED_COMMIT
from tests.support.upstream import from_git, install


@pytest.fixture(autouse=True)
def imported_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    _forget()
    yield
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "jevbench"]:
        del sys.modules[name]


@pytest.fixture
def standin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """The stand-in, installed as if it were the pinned commit."""
    site = install(tmp_path / "site", from_git(PINNED_COMMIT))
    monkeypatch.syspath_prepend(str(site))
    return load(Location(site.resolve(), "installed package"))
