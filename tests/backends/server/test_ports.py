"""Two processes that start servers at once never choose one port."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jevexp.backends import server

ROOT = Path(__file__).parents[3]
CLAIM = (
    "import itertools, sys\n"
    "from jevexp.backends import server\n"
    "found = itertools.chain([int(sys.argv[1])], itertools.repeat(int(sys.argv[2])))\n"
    "server._free_port = lambda: next(found)\n"
    "print(server.claim_port(), flush=True)\n"
    "sys.stdin.read()\n"
)


def claimed_elsewhere(wanted: int, other: int) -> tuple[int, "subprocess.Popen[str]"]:
    """What another process claims that finds these two free, and the process."""
    process = subprocess.Popen(
        [sys.executable, "-c", CLAIM, str(wanted), str(other)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    return int(process.stdout.readline()), process


def test_a_claimed_port_is_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = server.claim_port()
    free = server._free_port()
    found, process = claimed_elsewhere(mine, free)
    process.communicate()
    assert found == free
    server.release_port(mine)
    found, process = claimed_elsewhere(mine, free)
    # While that process lives its claim holds, and no longer.
    monkeypatch.setattr(server, "_free_port", iter([mine, free]).__next__)
    assert (found, server.claim_port()) == (mine, free)
    process.kill()
    process.communicate()
    monkeypatch.setattr(server, "_free_port", lambda: mine)
    assert server.claim_port() == mine
    for port in (mine, free):
        server.release_port(port)


def test_claims_are_in_the_home_folder_where_the_cache_is_there(tmp_path: Path) -> None:
    # A process claims ports in one file for as long as it lives.
    home = {"HOME": str(tmp_path / "home"), "JEVEXP_CACHE": "~/x", "PYTHONPATH": str(ROOT / "src")}
    claim = "from jevexp.backends.server import claim_port; claim_port()"
    subprocess.run([sys.executable, "-c", claim], cwd=tmp_path, env=os.environ | home, check=True)

    assert (tmp_path / "home" / "x" / "ports.lock").is_file()
    assert not (tmp_path / "~").exists()
