"""Nothing that is started looks for modules in the current folder, which may be a stranger's."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import jevexp
from jevexp.untrusted.python import (
    leave_out_current_folder,
    leave_safe_environment,
    python_module,
    safe_environment,
)
from tests.support.cli import jevexp_process

TRAP = "import pathlib\npathlib.Path(__file__).with_name('MARK').touch()\n"
# Found first wherever the current folder is; each is imported by something that we start.
NAMES = ("mlflow", "json", "httpx", "hydra_plugins", "xllamacpp", "joblib", "scipy", "git")


@pytest.fixture
def traps(workplace: Path) -> Path:
    """A folder whose files hide the modules of libraries."""
    for name in NAMES:
        (workplace / f"{name}.py").write_text(TRAP)
    return workplace


def test_a_module_started_as_a_child_is_the_installed_one(traps: Path) -> None:
    done = subprocess.run([*python_module("json.tool"), "--help"], cwd=traps, check=True)
    assert done.returncode == 0
    assert not (traps / "MARK").exists()


def test_so_are_those_that_the_child_starts(traps: Path) -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-m', 'json.tool', '--help'])"
    with safe_environment():
        assert os.environ["PYTHONSAFEPATH"]
        subprocess.run([sys.executable, "-c", code], cwd=traps, check=True)
    assert not (traps / "MARK").exists()


def test_a_persons_own_variable_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    with safe_environment():
        leave_safe_environment()
        assert "PYTHONSAFEPATH" not in os.environ
        os.environ["PYTHONSAFEPATH"] = "jevexp"
    assert "PYTHONSAFEPATH" not in os.environ
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    with safe_environment():
        leave_safe_environment()
    assert os.environ["PYTHONSAFEPATH"] == "1"


@pytest.mark.parametrize(
    "arguments",
    [
        ("dataset=demo", "tracking=none", "caps=smoke"),
        ("-m", "dataset=demo", "tracking=none", "caps=smoke", "backend.seed=1,2"),
        ("list",),
        ("--help",),
    ],
)
def test_python_m_jevexp_takes_no_module_of_the_current_folder(
    arguments: tuple[str, ...], traps: Path
) -> None:
    assert jevexp_process(*arguments, cwd=traps).status == (2 if arguments == ("list",) else 0)
    assert not (traps / "MARK").exists()


def test_only_the_current_folder_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["/usr/bin", "", str(Path.cwd())])
    leave_out_current_folder()
    assert sys.path == ["/usr/bin", "", str(Path.cwd())]
    for first in ("", str(Path.cwd())):
        monkeypatch.setattr(sys, "path", [first, "/usr/lib"])
        leave_out_current_folder()
        assert sys.path == ["/usr/lib"]


def test_every_child_that_is_python_is_started_so() -> None:
    started = []
    for path in Path(jevexp.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.executable":
                started.append(path.name)
    # The probe of a network's locks is isolated and without site, which is stricter.
    assert sorted(started) == ["location.py", "python.py"]
