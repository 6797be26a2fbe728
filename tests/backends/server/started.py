"""Started servers: how to make one, and which processes it consists of."""

import os
import re
import sys
import time
from pathlib import Path

from jevexp.backends.server import LOG_NAME, CommandServer
from jevexp.settings import ServerCommand

PROGRAM = Path(__file__).with_name("program.py")


def server(
    *options: str, start_timeout_s: float = 30.0, api_key_env: str | None = None
) -> CommandServer:
    """The test server, not started yet."""
    command = (sys.executable, str(PROGRAM), "{port}", *options)
    return CommandServer(
        ServerCommand(command=command, start_timeout_s=start_timeout_s, api_key_env=api_key_env)
    )


def pids(directory: Path) -> list[int]:
    """The processes that the test server has named in its log."""
    log = (directory / LOG_NAME).read_text()
    return [int(pid) for pid in re.findall(r"^(?:server|child) (\d+)$", log, re.MULTILINE)]


def alive(pid: int) -> bool:
    """Whether a process exists; one that has ended and was not waited for does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def gone(*pids: int, within_s: float = 10.0) -> bool:
    """Whether processes have ended, or do so in time."""
    deadline = time.monotonic() + within_s
    while any(map(alive, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
