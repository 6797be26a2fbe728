"""A started server seen from here: how it is ended, and why it gave up."""

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

from jevexp.untrusted.files import opened

LOG_NAME = "server.log"
_STOP_TIMEOUT_S = 3.0
# Of a server that logs without end, the beginning has the cause.
_MOST_BYTES = 4 << 20
# How a line of llama.cpp's log begins: a clock, then the level.
_ERROR = re.compile(r"[\d.]+ E +")


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a server that leads its process group, politely first, and close our ends of its pipes.

    What is left after that is killed with its whole group.
    """
    process.terminate()
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    finally:
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def last_words(log: Path, start: int = 0) -> str:
    """Why a server gave up, from its log after byte `start`: one line without clock and level."""
    with opened(log, follow_links=False) as file:
        file.seek(start)
        lines = file.read(_MOST_BYTES).decode(errors="replace").splitlines()
    lines = [line.strip() for line in lines if line.strip()]
    # llama.cpp names the cause first and then every caller that failed with it.
    errors = [_ERROR.sub("", line) for line in lines if _ERROR.match(line)]
    return (errors or lines[-1:] or ["it wrote nothing"])[0][:300]


PR_SET_PDEATHSIG = 1


def parent_to_name() -> int | None:
    """Our process id for the child's `die_with`; None where that would end the child too early.

    Linux ties a child to the thread that starts it, which may end before the process does.
    """
    lasting = threading.current_thread() is threading.main_thread()
    return os.getpid() if lasting else None


def die_with(parent: int | None, signal_number: int) -> None:
    """Have Linux send this process a signal when `parent` ends; end at once if it has already."""
    if parent is None or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def wait_for_end_of_input() -> None:
    """Return once standard input has ended."""
    while os.read(0, 4096):
        pass
