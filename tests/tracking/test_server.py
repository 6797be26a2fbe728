"""The user interface as a child process."""

import subprocess
import sys
from pathlib import Path

import pytest

from jevexp.tracking import TrackingError
from jevexp.tracking.mlflow import environment as module
from jevexp.tracking.mlflow.environment import user_interface
from jevexp.tracking.mlflow.location import StoreLocation


def child(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(module, "_command", lambda *_: [sys.executable, "-c", code])


def test_a_child_that_ends_at_once_is_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    child(monkeypatch, "raise SystemExit('no such option')")

    with (
        pytest.raises(TrackingError, match="ended with status 1: no such option"),
        user_interface(StoreLocation.of(None, tmp_path), 1) as running,
    ):
        running.wait_until_up()


def test_a_child_finds_no_modules_in_the_folder_where_we_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    child(monkeypatch, "import os, sys; sys.exit(f'{os.getcwd()} {sys.flags.safe_path}')")

    with (
        pytest.raises(TrackingError) as refused,
        user_interface(StoreLocation.of(None, tmp_path), 1) as running,
    ):
        running.wait_until_up()

    assert "ended with status 1: /" in str(refused.value)
    assert str(refused.value).endswith(" True")
    assert str(tmp_path) not in str(refused.value)


def test_a_child_that_never_answers_is_given_up_and_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def remember(*args: object, **kwargs: object) -> subprocess.Popen[bytes]:
        started.append(popen(*args, **kwargs))  # type: ignore[call-overload]
        return started[-1]

    monkeypatch.setattr(module, "START_TIMEOUT_S", 0.5)
    monkeypatch.setattr(subprocess, "Popen", remember)
    child(monkeypatch, "import time; time.sleep(60)")

    with (
        pytest.raises(TrackingError, match="cannot be reached"),
        user_interface(StoreLocation.of(None, tmp_path), 1) as running,
    ):
        running.wait_until_up()

    assert started[0].returncode is not None


def test_a_child_that_ends_later_is_quoted_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    child(monkeypatch, "print('out of memory'); raise SystemExit(9)")

    with (
        pytest.raises(TrackingError, match="ended with status 9: out of memory"),
        user_interface(StoreLocation.of(None, tmp_path), 1) as running,
    ):
        running.wait_until_over()
