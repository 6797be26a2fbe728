"""A file is hashed once, and again only when it may have changed."""

import hashlib
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress

from jevexp.untrusted import writing
from jevexp.weights import digest
from jevexp.weights.digest import Digest, WeightsError, file_sha256
from tests.weights import gguf_bytes

CONTENT = bytes(range(256)) * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
HASH = """
import sys
from pathlib import Path
from jevexp.weights.digest import file_sha256
print(file_sha256(Path(sys.argv[1])).bytes_read)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("JEVEXP_CACHE", str(folder))
    return folder


@pytest.fixture
def file(tmp_path: Path, cache: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(CONTENT)
    return path


def touch(path: Path) -> None:
    """Move the file's time, however coarse the system's clock is."""
    times = path.stat()
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + 1_000_000_000))


def test_a_second_call_reads_nothing(file: Path) -> None:
    assert file_sha256(file) == Digest(SHA256, len(CONTENT), (), len(CONTENT))
    assert file_sha256(file) == Digest(SHA256, len(CONTENT), (), 0)


def test_hashes_are_remembered_in_the_home_folder_where_the_cache_is_there(
    file: Path, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(workplace / "home"))
    monkeypatch.setenv("JEVEXP_CACHE", "~/x")

    file_sha256(file)

    assert [SHA256 in entry.read_text() for entry in workplace.rglob("home/x/*/*.json")] == [True]
    assert not (workplace / "~").exists()
    assert file_sha256(file).bytes_read == 0


def test_a_second_process_reads_nothing(file: Path) -> None:
    file_sha256(file)
    done = subprocess.run(
        [sys.executable, "-c", HASH, str(file)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"


def test_a_touched_file_is_hashed_again(file: Path) -> None:
    file_sha256(file)
    touch(file)
    assert file_sha256(file).bytes_read == len(CONTENT)
    assert file_sha256(file).bytes_read == 0


def test_a_change_is_noticed_where_the_time_was_set_back(file: Path) -> None:
    file_sha256(file)
    before = file.stat()
    time.sleep(0.02)  # past the clock's tick
    changed = CONTENT[:-1] + b"x"
    with file.open("r+b") as same:
        same.write(changed)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = file.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (
        before.st_size,
        before.st_mtime_ns,
        before.st_ino,
    )
    assert file_sha256(file).sha256 == hashlib.sha256(changed).hexdigest()


def test_a_file_put_in_its_place_is_hashed(file: Path, tmp_path: Path) -> None:
    file_sha256(file)
    other = tmp_path / "other"
    other.write_bytes(CONTENT[::-1])
    times = file.stat()
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.replace(file)
    assert file_sha256(file).sha256 == hashlib.sha256(CONTENT[::-1]).hexdigest()


def test_two_files_with_the_same_content_are_two(file: Path, tmp_path: Path) -> None:
    file_sha256(file)
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(CONTENT)
    assert file_sha256(copy).bytes_read == len(CONTENT)
    assert file_sha256(file).bytes_read == 0


def test_a_relative_path_is_the_same_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file_sha256(file)
    monkeypatch.chdir(file.parent)
    assert file_sha256(Path(file.name)).bytes_read == 0


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"\xff\xfe",
        b"{}",
        json.dumps({"sha256": SHA256}).encode(),
        b"[" * 100_000,
    ],
)
def test_a_damaged_memory_is_ignored(file: Path, cache: Path, damage: bytes) -> None:
    file_sha256(file)
    (entry,) = cache.glob("hashes/*.json")
    entry.write_bytes(damage)
    assert file_sha256(file) == Digest(SHA256, len(CONTENT), (), len(CONTENT))
    assert file_sha256(file).bytes_read == 0


@pytest.mark.parametrize("wrong", ["0" * 63, "Z" * 64, 7, None])
def test_a_memory_with_something_else_than_a_hash_is_ignored(
    file: Path, cache: Path, wrong: object
) -> None:
    file_sha256(file)
    (entry,) = cache.glob("hashes/*.json")
    entry.write_text(json.dumps(json.loads(entry.read_text()) | {"sha256": wrong}))
    assert file_sha256(file) == Digest(SHA256, len(CONTENT), (), len(CONTENT))


def test_a_cache_that_cannot_be_written_costs_only_time(
    file: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.write_text("a file, not a folder")
    for _ in range(2):
        assert file_sha256(file) == Digest(SHA256, len(CONTENT), (), len(CONTENT))
    assert "hashes cannot be remembered: " in caplog.text


def test_a_full_disk_costs_only_time(
    file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(writing, "write_all", full)
        assert file_sha256(file).sha256 == SHA256
    # Neither an entry nor a part of one; nobody removes locks.
    assert [path.suffix for path in cache.glob("hashes/*")] == [".lock"]
    assert file_sha256(file).bytes_read == len(CONTENT)


def test_nothing_half_written_is_left(file: Path, cache: Path) -> None:
    file_sha256(file)
    names = [path.suffix for path in cache.glob("hashes/*")]
    assert sorted(set(names) - {".lock"}) == [".json"]


def test_processes_that_start_at_once_read_once(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "large.gguf"
    size = 64 << 20
    with path.open("wb") as file:
        file.truncate(size)
    command = [sys.executable, "-c", HASH, str(path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    read = [int(process.communicate(timeout=60)[0]) for process in processes]
    assert sorted(read) == [0, 0, size]


@pytest.mark.parametrize("how", ["longer", "shorter", "touched", "replaced"])
def test_a_file_that_changes_while_it_is_hashed_is_noticed(
    file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    def change(*_: object) -> None:
        """Every step of the progress bar is a change."""
        if how == "longer":
            with file.open("ab") as more:
                more.write(b"x" * 10)
        elif how == "shorter":
            os.truncate(file, 1000)
        elif how == "touched":
            touch(file)
        else:
            other = file.with_name("other")
            other.write_bytes(CONTENT)
            other.replace(file)

    monkeypatch.setattr(digest, "_CHUNK_BYTES", 1000)
    monkeypatch.setattr(Progress, "advance", change)
    with pytest.raises(WeightsError) as caught:
        file_sha256(file)
    assert str(caught.value) == f"{file}: changed while it was hashed; wait until it is complete"
    assert list(cache.glob("hashes/*.json")) == []


def test_parts_have_one_hash_over_theirs(tmp_path: Path, cache: Path) -> None:
    parts = gguf_bytes.split(tmp_path, 3)
    hashes = [hashlib.sha256(part.read_bytes()).hexdigest() for part in parts]
    size = sum(part.stat().st_size for part in parts)
    whole = hashlib.sha256("".join(f"{one}\n" for one in hashes).encode()).hexdigest()
    assert file_sha256(parts[1]) == Digest(whole, size, tuple(hashes), size)
    assert file_sha256(parts[0]).bytes_read == 0
    touch(parts[2])
    assert file_sha256(parts[0]).bytes_read == parts[2].stat().st_size


def test_a_missing_part_is_named(tmp_path: Path, cache: Path) -> None:
    parts = gguf_bytes.split(tmp_path, 3)
    parts[2].unlink()
    with pytest.raises(WeightsError, match=r"big-00003-of-00003\.gguf: missing; part 3 of 3"):
        file_sha256(parts[0])


def test_what_is_no_file_is_refused(tmp_path: Path, cache: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(WeightsError, match="expected a file, found a pipe"):
        file_sha256(tmp_path / "pipe")
    with pytest.raises(WeightsError, match="No such file"):
        file_sha256(tmp_path / "nothing")


def test_a_bar_is_drawn_on_a_terminal_only(file: Path) -> None:
    terminal, log = io.StringIO(), io.StringIO()
    file_sha256(file, show=Console(file=log))
    touch(file)
    file_sha256(file, show=Console(file=terminal, force_terminal=True, width=120))
    assert log.getvalue() == ""
    assert "hashing model.gguf" in terminal.getvalue()
