"""Whether a ledger's file lies where locks can be trusted."""

import fcntl
import re
import subprocess
import sys
from pathlib import Path

from jevexp.ledger.books import LedgerError
from jevexp.untrusted.writing import Folder

# File systems that other machines write to as well. Whether their locks reach those machines
# depends on mount options and servers that cannot be seen from here; FUSE may be anything.
_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|smb3|9p|afs|ceph|lustre|gpfs|beegfs|glusterfs|gfs2?|ocfs2|pvfs2|"
    r"orangefs|panfs|virtiofs|vboxsf|prl_fs|fuse(blk)?(\..*)?"
)
_TRY = """
import fcntl, sys
try:
    fcntl.flock(open(sys.argv[1], "rb"), fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit(1)
"""


def check_locks(path: Path, *, allow_network: bool) -> None:
    """Refuse a file on a network file system, or one there whose lock excludes nobody.

    Args:
        path: the ledger's file, which need not exist.
        allow_network: the person says that locks work between all machines that share it.

    Raises:
        LedgerError: with the file system's kind.
    """
    kind = file_system(path)
    if kind is None or not _NETWORK.fullmatch(kind):
        return
    if not allow_network:
        raise LedgerError(
            f"{path}: lies on {kind}, where locks may not reach every machine; use a local disk or "
            "caps.ledger_url, or set caps.ledger_on_network=true if you know that they do"
        )
    if not lock_excludes(path):
        raise LedgerError(f"{path}: locks on this {kind} exclude nobody; use caps.ledger_url")


def file_system(path: Path) -> str | None:
    """The kind of file system that a path lies on; None where the system does not say.

    Linux lists what is mounted where in /proc/self/mountinfo (proc(5)).
    """
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return None
    place = path.resolve()
    found: tuple[int, str] | None = None
    for line in lines:
        mounted, _, source = line.partition(" - ")
        point = Path(re.sub(r"\\(\d{3})", _unescaped, mounted.split()[4]))
        # Of two on one point the later one is seen.
        if place.is_relative_to(point) and (found is None or len(point.parts) >= found[0]):
            found = len(point.parts), source.split()[0]
    return found[1] if found else None


def lock_excludes(path: Path) -> bool:
    """Whether a lock that is held here keeps another process from taking it."""
    with Folder.named(path.parent) as folder, folder.append(path.name) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = subprocess.run([sys.executable, "-I", "-S", "-c", _TRY, str(path)], check=False)
    return done.returncode == 1


def _unescaped(octal: re.Match[str]) -> str:
    return chr(int(octal[1], 8))
