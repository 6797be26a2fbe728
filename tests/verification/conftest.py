"""A finished run and a killed one, made by the real program."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jevexp.verification import Result, verify_run
from tests.support.cli import jevexp, only_run, start

SLOW = ("dataset=demo", "backend=fake", "backend.latency_s=0.1", "tracking=none")


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


def stopped(place: Path, signum: int, *, meanwhile: Callable[[Path], None] | None = None) -> Path:
    """A run that got a signal once three tasks were done."""
    process = start(*SLOW, cwd=place)
    try:
        deadline = time.monotonic() + 60
        while not any(
            path.read_bytes().count(b"\n") >= 3
            for path in place.glob("outputs/20*/*/results.jsonl")
        ):
            assert time.monotonic() < deadline, "no three records within a minute"
            time.sleep(0.02)
        run = only_run(place / "outputs")
        if meanwhile:
            meanwhile(run)
        os.kill(process.pid, signum)
        process.communicate(timeout=60)
    finally:
        process.kill()
    return run


@pytest.fixture(scope="module")
def killed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What SIGKILL leaves in the middle of a run; not to be changed."""

    def look(run: Path) -> None:
        report = verify_run(run)
        assert not any(check.failed for check in report.checks)
        assert report.incomplete == "a process is still writing it"
        assert {check.result for check in report.checks} == {Result.NOT_CHECKED}

    return stopped(tmp_path_factory.mktemp("killed"), signal.SIGKILL, meanwhile=look)


@pytest.fixture
def killed(killed_run: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(killed_run, tmp_path / killed_run.name))
