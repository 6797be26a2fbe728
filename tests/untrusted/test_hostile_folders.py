"""Folders that a stranger has prepared: nothing outside of them changes, nothing waits."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from jevexp.untrusted import files
from jevexp.untrusted.files import NotAFile, RefusedPath, is_group_folder, permissions
from jevexp.untrusted.writing import (
    Folder,
    append,
    create,
    make_folder,
    make_folders,
    remove,
    replace,
)

STRANGER = 54_321


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


KINDS: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: path.symlink_to("victim"), "a link"),
    (lambda path: path.symlink_to("nowhere"), "a link"),
    (os.mkfifo, "a pipe"),
    (_socket, "a socket"),
    (Path.mkdir, "a folder"),
]


@pytest.mark.parametrize("write", [lambda path: replace(path, b"new"), append])
@pytest.mark.parametrize(("make", "found"), KINDS)
def test_what_is_in_the_way_of_a_file_is_named_and_left_alone(
    workplace: Path, make: Callable[[Path], object], found: str, write: Callable[[Path], object]
) -> None:
    (workplace / "victim").write_bytes(b"precious")
    make(workplace / "file")
    with pytest.raises(NotAFile, match=f"is {found}, and nothing is written into it") as caught:
        write(workplace / "file")
    assert caught.value.filename == str(workplace / "file")
    assert (workplace / "victim").read_bytes() == b"precious"
    assert sorted(path.name for path in workplace.iterdir()) == ["file", "victim"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
@pytest.mark.parametrize("write", [lambda path: replace(path, b"new"), append])
def test_a_device_is_not_even_opened(tmp_path: Path, write: Callable[[Path], object]) -> None:
    try:
        os.mknod(tmp_path / "file", 0o600 | 0o020000, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("no devices here")
    with pytest.raises(NotAFile, match="is a device"):
        write(tmp_path / "file")


def test_a_new_file_is_made_beside_no_link(tmp_path: Path) -> None:
    (tmp_path / "file").symlink_to("elsewhere")
    with pytest.raises(FileExistsError):
        create(tmp_path / "file")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    "write",
    [
        lambda folder: replace(folder / "file", b"new"),
        lambda folder: create(folder / "file"),
        lambda folder: append(folder / "file"),
        lambda folder: remove(folder / "file"),
    ],
)
def test_a_linked_folder_leads_nowhere(tmp_path: Path, write: Callable[[Path], object]) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_bytes(b"precious")
    (tmp_path / "plots").symlink_to("elsewhere")
    with pytest.raises(NotAFile, match="is a link, and nothing is written through one"):
        write(tmp_path / "plots")
    with Folder.open(tmp_path) as folder, pytest.raises(NotAFile, match="is a link"):
        folder.below("plots")
    assert (tmp_path / "elsewhere" / "file").read_bytes() == b"precious"
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["file"]


def test_a_folder_that_is_exchanged_for_a_link_is_still_the_one_that_was_opened(
    tmp_path: Path,
) -> None:
    (tmp_path / "elsewhere").mkdir()
    with Folder.named(tmp_path / "run") as folder:
        (tmp_path / "run").rename(tmp_path / "moved")
        (tmp_path / "run").symlink_to("elsewhere")
        with folder.below("plots") as plots:
            plots.replace("a", b"1")
        folder.replace("page", b"2")
    assert (tmp_path / "moved" / "plots" / "a").read_bytes() == b"1"
    assert (tmp_path / "moved" / "page").read_bytes() == b"2"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_no_name_that_is_used_on_the_way_can_be_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []
    rename = os.rename

    def renamed(old: str, new: str, **at: int) -> None:
        names.append(old)
        rename(old, new, **at)

    monkeypatch.setattr(os, "rename", renamed)
    for _ in range(2):
        replace(tmp_path / "page", b"x")
    assert len(set(names)) == 2
    assert all(len(name) == len(".page.") + 16 for name in names)


def test_content_that_another_name_has_too_is_not_added_to(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"precious\n")
    (tmp_path / "ledger").hardlink_to(tmp_path / "victim")
    with pytest.raises(RefusedPath, match="second name"):
        append(tmp_path / "ledger")
    # Replaced, it is a file of its own.
    replace(tmp_path / "ledger", b"new")
    assert (tmp_path / "victim").read_bytes() == b"precious\n"


@pytest.fixture
def as_ourselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests, what a test makes is a stranger's: we are somebody else."""
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    monkeypatch.setattr(files, "_ROOT", -1)


@pytest.mark.usefixtures("as_ourselves")
def test_nothing_is_written_into_a_strangers_folder(tmp_path: Path) -> None:
    with pytest.raises(RefusedPath, match="is a folder of user "):
        replace(tmp_path / "file", b"x")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_into_a_strangers_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ledger").write_bytes(b"")
    with Folder.open(tmp_path) as folder:
        monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
        monkeypatch.setattr(files, "_ROOT", -1)
        for write in (lambda: folder.append("ledger"), lambda: folder.replace("ledger", b"x")):
            with pytest.raises(RefusedPath, match="is a file of user "):
                write()
        # A team's folder, or access for the group, means that others' files are in it.
        with permissions(group=True), folder.append("ledger") as file:
            file.write(b"row\n")
    assert (tmp_path / "ledger").read_bytes() == b"row\n"


@pytest.mark.usefixtures("as_ourselves")
def test_a_teams_folder_is_written_by_everybody_in_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o2770)
    assert is_group_folder(tmp_path.stat())
    replace(tmp_path / "file", b"x")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o660


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
def test_what_is_made_is_its_owners_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    tmp_path.chmod(0o777)
    before = os.umask(umask)
    try:
        make_folders(tmp_path / "a" / "b")
        make_folder(tmp_path / "a" / "c")
        replace(tmp_path / "a" / "replaced", b"")
        create(tmp_path / "a" / "created").close()
        append(tmp_path / "a" / "appended").close()
        append(tmp_path / "beside").close()
    finally:
        os.umask(before)
    found = {path.name: path.stat().st_mode & 0o7777 for path in tmp_path.rglob("*")}
    assert found == {"a": 0o700, "b": 0o700, "c": 0o700, "replaced": 0o600, "created": 0o600,
                     "appended": 0o600, "beside": 0o600}  # fmt: skip


@pytest.mark.parametrize("umask", [0o022, 0o277])
def test_with_access_for_the_group_it_is_the_groups_too(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with permissions(group=True):
            make_folders(tmp_path / "a" / "b")
            append(tmp_path / "ledger").close()
            # Made by a library, which knows nothing of this.
            (tmp_path / "library").touch()
        # What is made in there later is the group's because the folder is.
        replace(tmp_path / "a" / "b" / "page", b"")
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert (tmp_path / "a" / "b").stat().st_mode & 0o7777 == 0o2770
    for name in ("ledger", "library", "a/b/page"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o660, name


def test_without_it_a_library_makes_files_for_their_owner(tmp_path: Path) -> None:
    with permissions(group=False):
        (tmp_path / "library").touch(mode=0o666)
    assert (tmp_path / "library").stat().st_mode & 0o777 == 0o600


def test_a_persons_own_link_on_the_way_to_a_new_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "outputs").symlink_to("disk")
    make_folders(tmp_path / "outputs" / "day" / "run")
    assert (tmp_path / "disk" / "day" / "run").is_dir()


@pytest.mark.parametrize(("make", "reason"), [
    (lambda path: path.symlink_to("nowhere"), "is a link that leads nowhere"),
    (Path.touch, "is no folder"),
    (os.mkfifo, "is no folder"),
])  # fmt: skip
def test_a_folder_that_cannot_be_made_says_why(
    tmp_path: Path, make: Callable[[Path], object], reason: str
) -> None:
    make(tmp_path / "a")
    with pytest.raises(OSError, match=reason) as caught:
        make_folders(tmp_path / "a" / "b")
    assert caught.value.filename == str(tmp_path / "a")
