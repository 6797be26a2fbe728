"""A finished run, made by the real program once a session."""

import shutil
from pathlib import Path

import pytest

from tests.support.cli import jevexp, only_run


@pytest.fixture(scope="session")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run of 12 tasks; not to be changed."""
    place = tmp_path_factory.mktemp("run")
    done = jevexp("dataset=demo", "tracking=none", "backend=fake", "backend.mode=noise",
                  "caps.limit=12", cwd=place)  # fmt: skip
    assert done.status == 0, done.out + done.err
    return only_run(place / "outputs")


@pytest.fixture
def run(noisy: Path, tmp_path: Path) -> Path:
    """A copy of that run, to be changed."""
    return Path(shutil.copytree(noisy, tmp_path / noisy.name))
