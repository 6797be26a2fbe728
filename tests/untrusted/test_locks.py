"""Locks on files that exclude others, and messages that say who has them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from jevexp.untrusted import locks
from jevexp.untrusted.files import RefusedPath
from jevexp.untrusted.locks import LockHeld, holder, locked

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def elsewhere(path: Path) -> Iterator[int]:
    """Another process that has the lock."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process.pid
        process.kill()


def test_a_lock_is_had_by_one_at_a_time_and_free_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lock"
    for _ in range(2):
        with locked(path), pytest.raises(LockHeld), locked(path, 0.0):
            pass
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.fixture
def no_list_of_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a system that lists no locks."""
    read = Path.read_text

    def missing(path: Path, *arguments: Any, **named: Any) -> str:
        if str(path) == "/proc/locks":
            raise FileNotFoundError
        return read(path, *arguments, **named)

    monkeypatch.setattr(Path, "read_text", missing)


@pytest.mark.usefixtures("no_list_of_locks")
def test_where_locks_are_not_listed_whoever_has_the_file_open_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with elsewhere(path) as pid, path.open("rb"):
        assert holder(path) == holder(tmp_path / "missing", path)
        command = r"\(\S*python\S* -c import fcntl, sys .*\)"
        assert re.fullmatch(rf"process {pid} of user \S+ on \S+ {command}", holder(path))
    assert holder(path) == "another process"


def test_where_nothing_is_said_of_processes_it_is_another_one(
    tmp_path: Path, no_list_of_locks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "nothing"))
    with elsewhere(path):
        assert holder(path) == "another process"


def test_whoever_has_it_is_named_with_user_and_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with (
        elsewhere(path) as pid,
        pytest.raises(LockHeld) as caught,
        locked(path, 0.0),
    ):
        pass
    assert caught.value.filename == str(path)
    reason = caught.value.strerror or ""
    assert f"process {pid} of user " in reason
    assert reason.endswith(" has held the lock for 0 s")


def test_another_users_process_is_named_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    with elsewhere(path) as pid:
        monkeypatch.setattr(locks, "user_name", lambda _: "user somebody")
        assert f"process {pid} of user somebody on " in holder(path)


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_strangers_lock_file_is_neither_followed_nor_waited_for(
    tmp_path: Path, kind: str
) -> None:
    (tmp_path / "victim").write_bytes(b"precious")
    if kind == "link":
        (tmp_path / "lock").symlink_to("victim")
    else:
        os.mkfifo(tmp_path / "lock")
    with pytest.raises(RefusedPath, match=f"is a {kind}"), locked(tmp_path / "lock"):
        pass
    assert (tmp_path / "victim").read_bytes() == b"precious"
