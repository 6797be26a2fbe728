"""Where a ledger may lie, what is made for it there, and whether a lock really excludes."""

import fcntl
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from jevexp.errors import InputError
from jevexp.ledger import location
from jevexp.ledger.location import LedgerDatabase, LedgerFile
from jevexp.ledger.state import LedgerError

MOUNTS = [
    ("/", "ext4"),
    ("/home", "nfs4"),
    ("/home/me/disk", "xfs"),
    ("/mnt/with space", "fuse.sshfs"),
    ("/twice", "nfs"),
    ("/twice", "ext4"),
]


@pytest.fixture
def mounts(monkeypatch: pytest.MonkeyPatch) -> None:
    partitions = [SimpleNamespace(mountpoint=point, fstype=kind) for point, kind in MOUNTS]
    monkeypatch.setattr(psutil, "disk_partitions", lambda *, all: partitions)


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/ledger.jsonl", "ext4"),
        ("/home/me/ledger.jsonl", "nfs4"),
        ("/homework/ledger.jsonl", "ext4"),
        ("/home/me/disk/ledger.jsonl", "xfs"),
        ("/mnt/with space/ledger.jsonl", "fuse.sshfs"),
        ("/twice/ledger.jsonl", "ext4"),
    ],
)
def test_the_innermost_mount_says_the_kind(path: str, kind: str) -> None:
    assert location.file_system(Path(path)) == kind


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize("path", ["/home/me/ledger.jsonl", "/mnt/with space/ledger.jsonl"])
def test_a_network_file_system_is_refused_with_the_ways_out(path: str) -> None:
    with pytest.raises(InputError, match=r"^caps\.ledger: .* lies on .*caps\.ledger_url, or set"):
        LedgerFile(Path(path)).check()
    with pytest.raises(InputError, match=r"^caps\.ledger_url: .* lies on "):
        LedgerDatabase(f"sqlite:///{path}").check()
    # One process has it for itself.
    LedgerFile(Path(path), shared=False).check()
    LedgerFile(Path("/var/ledger.jsonl")).check()


def test_this_file_system_has_a_kind_and_locks(tmp_path: Path) -> None:
    assert location.file_system(tmp_path)
    assert location.lock_excludes(tmp_path / "ledger.jsonl")


def test_where_locks_exclude_nobody_no_setting_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(location, "file_system", lambda path: "nfs")
    path = tmp_path / "ledger.jsonl"
    location.check_locks(path, allow_network=True)
    with monkeypatch.context() as patch:
        # What a file system without locks does.
        patch.setattr(fcntl, "flock", lambda file, kind: None)
        with pytest.raises(LedgerError, match="locks on this nfs exclude nobody"):
            location.check_locks(path, allow_network=True)


def test_where_the_system_does_not_say_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    assert location.file_system(tmp_path) is None
    location.check_locks(tmp_path / "ledger.jsonl", allow_network=False)


def test_the_folders_of_a_ledger_are_made_for_who_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "ledger.jsonl"
    with LedgerFile(path).open(1.0) as ledger:
        ledger.reserve(0.25, {"task_id": "t"})
    assert path.read_text().count("\n") == 2


def test_who_only_looks_makes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new" / "ledger.jsonl"
    with pytest.raises(InputError, match=r"caps\.ledger: .*No such file"):
        LedgerFile(path).open(1.0, read_only=True)
    assert not path.parent.exists()


def test_only_sqlite_can_tell_that_there_is_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "here.db").touch()
    addresses = [f"sqlite:///{tmp_path}/{name}.db" for name in ("here", "missing")]
    addresses.append("postgresql://team@127.0.0.1/budget")
    assert [LedgerDatabase(address).exists for address in addresses] == [True, False, True]
