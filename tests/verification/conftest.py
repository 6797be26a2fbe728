"""Finished runs, made by the real program once a session."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cli import jevexp, only_run

MakeRun = Callable[..., Path]


@pytest.fixture(scope="session")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> MakeRun:
    """Run jevexp with overrides; a second time with the same ones gives the same directory."""
    made: dict[tuple[str, ...], Path] = {}

    def make(*overrides: str, status: int = 0) -> Path:
        if overrides not in made:
            place = tmp_path_factory.mktemp("run")
            done = jevexp("dataset=demo", "tracking=none", *overrides, cwd=place)
            assert done.status == status, done.out + done.err
            made[overrides] = only_run(place / "outputs")
        return made[overrides]

    return make


@pytest.fixture(scope="session")
def noisy(make_run: MakeRun) -> Path:
    """A complete run of 12 tasks, all kinds of questions among them; not to be changed."""
    return make_run("backend=fake", "backend.mode=noise", "caps.limit=12")


@pytest.fixture
def run(noisy: Path, tmp_path: Path) -> Path:
    """A copy of that run, to be changed."""
    return Path(shutil.copytree(noisy, tmp_path / noisy.name))
