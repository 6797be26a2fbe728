"""Which file systems a shared ledger may lie on, and whether a lock really excludes."""

import fcntl
from pathlib import Path

import pytest

from jevexp.errors import InputError
from jevexp.ledger import DatabasePlace, FilePlace, LedgerError, network

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw - nfs4 server:/home rw,vers=4.2
31 30 8:2 / /home/me/disk rw - xfs /dev/sdb1 rw
32 22 0:41 / /mnt/with\\040space rw master:1 - fuse.sshfs me@host: rw
33 22 0:42 / /twice rw - nfs server:/a rw
34 22 8:3 / /twice rw - ext4 /dev/sdc1 rw
"""


@pytest.fixture
def mounts(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Path.read_text

    def mounted(path: Path) -> str:
        return MOUNTS if str(path) == "/proc/self/mountinfo" else read(path)

    monkeypatch.setattr(Path, "read_text", mounted)


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
    assert network.file_system(Path(path)) == kind


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize("path", ["/home/me/ledger.jsonl", "/mnt/with space/ledger.jsonl"])
def test_a_network_file_system_is_refused_with_the_ways_out(path: str) -> None:
    with pytest.raises(InputError, match=r"^caps\.ledger: .* lies on .*caps\.ledger_url, or set"):
        FilePlace(Path(path)).check()
    with pytest.raises(InputError, match=r"^caps\.ledger_url: .* lies on "):
        DatabasePlace(f"sqlite:///{path}").check()
    # One process has it for itself.
    FilePlace(Path(path), shared=False).check()
    FilePlace(Path("/var/ledger.jsonl")).check()


def test_this_file_system_has_a_kind_and_locks(tmp_path: Path) -> None:
    assert network.file_system(tmp_path)
    assert network.lock_excludes(tmp_path / "ledger.jsonl")


def test_where_locks_exclude_nobody_no_setting_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "file_system", lambda path: "nfs")
    path = tmp_path / "ledger.jsonl"
    network.check_locks(path, allow_network=True)
    with monkeypatch.context() as patch:
        # What a file system without locks does.
        patch.setattr(fcntl, "flock", lambda file, kind: None)
        with pytest.raises(LedgerError, match="locks on this nfs exclude nobody"):
            network.check_locks(path, allow_network=True)


def test_where_the_system_does_not_say_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(path: Path) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", unreadable)
    assert network.file_system(tmp_path) is None
    network.check_locks(tmp_path / "ledger.jsonl", allow_network=False)
