"""Ledgers in places that somebody else may have prepared, and who may read what is made there."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jevexp.errors import InputError
from jevexp.ledger.location import LedgerDatabase, LedgerFile, LedgerLocation
from jevexp.untrusted.files import permissions


def place_of(kind: str, path: Path) -> LedgerLocation:
    return LedgerFile(path) if kind == "file" else LedgerDatabase(f"sqlite:///{path}")


def modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o7777 for path in folder.iterdir()}


@pytest.fixture
def wide_umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("kind", "name", "make"),
    [
        *(
            (kind, "ledger", make)
            for kind in ("file", "sqlite")
            for make in (
                os.mkfifo,
                lambda path: path.symlink_to("victim"),
                lambda path: path.symlink_to("nowhere"),
            )
        ),
        ("sqlite", "ledger-wal", os.mkfifo),
        ("sqlite", "ledger-journal", lambda path: path.symlink_to("victim")),
    ],
)
def test_what_is_no_file_is_refused_at_once(
    tmp_path: Path, kind: str, name: str, make: Callable[[Path], object], read_only: bool
) -> None:
    (tmp_path / "victim").write_bytes(b"precious")
    make(tmp_path / name)
    with pytest.raises(InputError, match=name):
        place_of(kind, tmp_path / "ledger").open(1.0, read_only=read_only)
    assert (tmp_path / "victim").read_bytes() == b"precious"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_another_files_second_name_is_no_ledger(tmp_path: Path, kind: str) -> None:
    (tmp_path / "victim").write_bytes(b"")
    (tmp_path / "ledger").hardlink_to(tmp_path / "victim")
    with pytest.raises(InputError, match="second name"):
        place_of(kind, tmp_path / "ledger").open(1.0)
    assert (tmp_path / "victim").read_bytes() == b""


def test_where_sessions_are_kept_is_no_link_either(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / "ledger.sessions").symlink_to("victim")
    (tmp_path / "run").mkdir()
    with pytest.raises(InputError, match=r"ledger\.sessions: is a link"):
        LedgerFile(tmp_path / "ledger").open(1.0, own_rows=tmp_path / "run" / "ledger.jsonl")
    assert (tmp_path / "victim").read_bytes() == b"precious"


@pytest.mark.usefixtures("wide_umask")
@pytest.mark.parametrize(
    ("group", "file", "folder"), [(False, 0o600, 0o700), (True, 0o660, 0o2770)]
)
def test_what_a_ledger_makes_is_for_its_owner_or_for_the_group(
    tmp_path: Path, group: bool, file: int, folder: int
) -> None:
    with permissions(group=group):
        for kind in ("file", "sqlite"):
            (tmp_path / f"run-{kind}").mkdir()
            own = tmp_path / f"run-{kind}" / "ledger.jsonl"
            place = place_of(kind, tmp_path / "new" / kind)
            with place.open(1.0, own_rows=own) as ledger:
                ledger.reserve(0.25, {})
                found = modes(tmp_path / "new")
                assert own.stat().st_mode & 0o777 == file
    assert found == dict.fromkeys(
        ["file", "file.sessions", "sqlite", "sqlite-wal", "sqlite-shm"], file
    )
    assert (tmp_path / "new").stat().st_mode & 0o7777 == folder


def test_a_persons_own_link_may_lead_to_the_folder(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "shared").symlink_to("disk")
    for kind in ("file", "sqlite"):
        with place_of(kind, tmp_path / "shared" / kind).open(1.0) as ledger:
            ledger.reserve(0.25, {})
        assert (tmp_path / "disk" / kind).stat().st_size
