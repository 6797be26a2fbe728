"""The cache: filled once, by content, proven on every use, and never holding half a file."""

import errno
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import NoReturn

import pytest

from jevexp.datasets import FileState, file_state
from jevexp.datasets.pinned import Limits, cached_path, fetch
from jevexp.errors import InputError
from jevexp.store.cache import cache_folder
from tests.datasets.file_server import FileServer, pin_of, serving, task_lines, whole

BODY = task_lines()
PIN = pin_of(BODY)
FETCH = """
import json, sys
from jevexp.datasets.pinned import fetch
from jevexp.settings import PinnedFile
pin, url = json.loads(sys.argv[1])
print(fetch(PinnedFile(**pin), url))
"""


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving(BODY) as running:
        yield running


def files_below(folder: Path) -> list[str]:
    """Every file that a reader could take for a result; lock files are none."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return sorted(str(path.relative_to(folder)) for path in found)


def test_a_file_is_kept_under_its_hash_and_name(server: FileServer, cache: Path) -> None:
    path = fetch(PIN, server.url)
    assert path == cache / "datasets" / PIN.sha256 / "tasks.jsonl"
    assert path.read_bytes() == BODY
    assert files_below(cache) == [f"datasets/{PIN.sha256}/tasks.jsonl"]


def test_a_filled_cache_needs_no_lock(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fetch(PIN, server.url)

    def read_only(*arguments: object) -> NoReturn:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("jevexp.datasets.pinned.locked", read_only)
    assert fetch(PIN, server.url) == path
    path.unlink()
    with pytest.raises(InputError, match="Read-only file system"):
        fetch(PIN, server.url)


def test_a_cached_file_is_not_asked_for_again(server: FileServer) -> None:
    assert file_state(PIN) is FileState.MISSING
    first = fetch(PIN, server.url)
    assert file_state(PIN) is FileState.CACHED
    assert fetch(PIN, "http://127.0.0.1:1/nobody") == first
    assert len(server.requests) == 1


def test_a_link_in_the_cache_leads_to_no_other_file(server: FileServer, tmp_path: Path) -> None:
    path = cached_path(PIN)
    path.parent.mkdir(parents=True)
    private = tmp_path / "private"
    private.write_text("mine")
    path.with_name(f".{path.name}.part").symlink_to(private)
    assert fetch(PIN, server.url).read_bytes() == BODY
    assert private.read_text() == "mine"


@pytest.mark.parametrize("damage", [BODY[:-1], BODY.replace(b"12", b"13"), b""])
def test_a_damaged_file_is_replaced(server: FileServer, damage: bytes) -> None:
    path = fetch(PIN, server.url)
    path.write_bytes(damage)
    assert file_state(PIN) is FileState.DAMAGED
    assert fetch(PIN, server.url).read_bytes() == BODY
    assert len(server.requests) == 2


def test_a_damaged_file_is_gone_when_no_other_is_to_be_had(server: FileServer, cache: Path) -> None:
    path = fetch(PIN, server.url)
    path.write_bytes(b"damaged")
    server.answer = lambda request, body: request.send_error(404)
    with pytest.raises(InputError, match="HTTP 404"):
        fetch(PIN, server.url)
    assert files_below(cache) == []


@pytest.mark.parametrize("body", [BODY + b"x", BODY[:-1], BODY.replace(b"12", b"13")])
def test_nothing_is_kept_of_a_wrong_file(server: FileServer, cache: Path, body: bytes) -> None:
    server.body = body
    with pytest.raises(InputError):
        fetch(PIN, server.url)
    assert files_below(cache) == []


def test_a_partial_file_has_another_name_and_is_removed(server: FileServer, cache: Path) -> None:
    seen: list[list[str]] = []

    def answer(request: BaseHTTPRequestHandler, body: bytes) -> None:
        request.send_response(200)
        request.end_headers()
        request.wfile.write(body[:100])
        request.wfile.flush()
        seen.append(files_below(cache))
        server.over.wait()

    server.answer = answer
    with pytest.raises(InputError, match=r"no answer for 0\.2 s"):
        fetch(PIN, server.url, limits=Limits(read_s=0.2))
    assert seen == [[f"datasets/{PIN.sha256}/.tasks.jsonl.part"]]
    assert files_below(cache) == []


def test_what_a_killed_process_left_is_replaced(server: FileServer, cache: Path) -> None:
    path = cached_path(PIN)
    path.parent.mkdir(parents=True)
    path.with_name(".tasks.jsonl.part").write_bytes(BODY + BODY)
    assert fetch(PIN, server.url).read_bytes() == BODY
    assert files_below(cache) == [f"datasets/{PIN.sha256}/tasks.jsonl"]


def test_processes_that_start_at_once_download_once(server: FileServer, tmp_path: Path) -> None:
    def slow(request: BaseHTTPRequestHandler, body: bytes) -> None:
        # Long enough that the other process gets to the lock before the file is there.
        time.sleep(1.0)
        whole(request, body)

    server.answer = slow
    argument = json.dumps([PIN.model_dump(), server.url])
    command = [sys.executable, "-c", FETCH, argument]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) for _ in range(2)
    ]
    outputs = [process.communicate(timeout=60)[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert outputs == [str(cached_path(PIN))] * 2
    assert len(server.requests) == 1


def test_threads_that_start_at_once_download_once(server: FileServer) -> None:
    threads = [threading.Thread(target=fetch, args=(PIN, server.url)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert file_state(PIN) is FileState.CACHED
    assert len(server.requests) == 1


def test_the_wait_for_another_process_ends(server: FileServer) -> None:
    server.answer = lambda request, body: server.over.wait(5)

    def wait_long() -> None:
        with pytest.raises(InputError, match="no answer for 1 s"):
            fetch(PIN, server.url, limits=Limits(read_s=1.0))

    patient = threading.Thread(target=wait_long)
    patient.start()
    while not server.requests:
        time.sleep(0.01)
    with pytest.raises(InputError, match=r"is being downloaded: .* has held the lock for 0\.2 s"):
        fetch(PIN, server.url, limits=Limits(connect_s=0.1, total_s=0.1))
    patient.join()


def test_a_cache_that_cannot_be_written_is_named(server: FileServer, cache: Path) -> None:
    cache.write_text("a file, not a folder")
    with pytest.raises(InputError) as caught:
        fetch(PIN, server.url)
    assert str(caught.value) == (
        f"{cache}: cannot use the dataset cache: is no folder; "
        "the environment variable JEVEXP_CACHE moves it"
    )
    assert server.requests == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_filled_cache_may_be_read_only(server: FileServer, cache: Path) -> None:
    path = fetch(PIN, server.url)
    folders = [path.parent, path.parent.parent, cache]
    for folder in folders:
        folder.chmod(0o500)
    try:
        assert fetch(PIN, server.url) == path
    finally:
        for folder in folders:
            folder.chmod(0o700)


def test_the_cache_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JEVEXP_CACHE", str(tmp_path))
    assert cached_path(PIN) == tmp_path / "datasets" / PIN.sha256 / "tasks.jsonl"


def test_a_file_is_kept_in_the_home_folder_where_the_cache_is_there(
    server: FileServer, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(workplace / "home"))
    monkeypatch.setenv("JEVEXP_CACHE", "~/x")

    found = fetch(PIN, server.url)

    assert found == workplace / "home" / "x" / "datasets" / PIN.sha256 / "tasks.jsonl"
    assert found.read_bytes() == BODY
    assert file_state(PIN) is FileState.CACHED
    assert not (workplace / "~").exists()


def test_the_cache_is_else_in_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    for nothing in (None, ""):
        if nothing is None:
            monkeypatch.delenv("JEVEXP_CACHE", raising=False)
        else:
            monkeypatch.setenv("JEVEXP_CACHE", nothing)
        assert cache_folder().name == "jevexp"
        assert cache_folder().is_absolute()
