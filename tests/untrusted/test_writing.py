"""Writes that leave the old state or the new one."""

import os
from io import FileIO
from pathlib import Path
from stat import S_ISDIR

import pytest

from jevexp.untrusted.writing import replace, write_durably, write_new


def test_a_new_file_is_written_whole(tmp_path: Path) -> None:
    write_new(tmp_path / "a", b"x" * 100_000)
    assert (tmp_path / "a").read_bytes() == b"x" * 100_000


def test_an_existing_file_is_not_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_dangling_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "a", b"new")
    assert not (tmp_path / "elsewhere").exists()


def test_a_replaced_file_is_the_new_one_and_nothing_else_is_left(tmp_path: Path) -> None:
    replace(tmp_path / "a", b"first")
    replace(tmp_path / "a", b"second")
    assert (tmp_path / "a").read_bytes() == b"second"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("step", ["fsync", "rename"])
def test_a_replacement_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    replace(tmp_path / "a", b"old")

    def fail(*arguments: object, **named: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        if step == "fsync":
            patch.setattr(os, "fsync", fail)
        else:
            patch.setattr(os, "rename", fail)
        with pytest.raises(OSError, match="No space left"):
            replace(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    replace(tmp_path / "a", b"newer")
    assert (tmp_path / "a").read_bytes() == b"newer"


def test_the_new_content_is_on_disk_before_it_gets_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    sync, rename = os.fsync, os.rename

    def synced(file: int) -> None:
        events.append("folder" if S_ISDIR(os.fstat(file).st_mode) else "file")
        sync(file)

    def renamed(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        events.append("rename")
        rename(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    replace(tmp_path / "a", b"new")
    assert events == ["file", "rename", "folder"]


def test_a_write_that_takes_only_a_part_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(FileIO):
        """Takes three bytes at a time."""

        def write(self, data: object) -> int:
            return super().write(bytes(data)[:3])  # type: ignore[call-overload]

    with Slow(tmp_path / "a", "wb") as file:
        write_durably(file, b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"
