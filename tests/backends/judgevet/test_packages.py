"""Where the bridge cannot be used, one line says so before anything is written."""

import importlib.util
import sys
from pathlib import Path

import pytest

from jevexp.errors import InputError
from tests.support.bridge import judgevet_backend
from tests.support.cli import jevexp

TOO_OLD = tuple(sys.version_info) < (3, 12)


def test_an_older_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 11, 7, "final", 0))
    with pytest.raises(InputError, match=r"needs Python 3\.12 or newer, this is 3\.11\.7; "):
        judgevet_backend()


@pytest.mark.parametrize("missing", ["judgevet", "typevet"])
def test_a_missing_package_comes_with_the_command_that_installs_it(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 12, 0, "final", 0))
    monkeypatch.setattr(
        "jevexp.backends.judgevet.find_spec",
        lambda name: None if name == missing else importlib.util.find_spec("json"),
    )
    with pytest.raises(InputError, match=f"{missing} is not installed; pip install 'jevexp"):
        judgevet_backend()


@pytest.mark.skipif(not TOO_OLD, reason="this Python is new enough for the bridge")
@pytest.mark.parametrize("option", ["judgevet", "typevet"])
def test_the_command_line_says_it_in_one_line(option: str, tmp_path: Path) -> None:
    done = jevexp(f"backend={option}", "dataset=demo", "model.alias=m", cwd=tmp_path)
    assert done.status == 2
    assert "needs Python 3.12 or newer" in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "outputs").exists()
