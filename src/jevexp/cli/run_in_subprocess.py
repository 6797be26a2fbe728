"""One run of a sweep in a process of its own, a child of the one that a launcher started.

When a launcher's worker is killed, joblib gives up the whole sweep, and Ray starts the run again.
So the worker only waits for a child. When the child is killed, most likely for want of memory, one
run has failed and its evidence is kept.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType

from jevexp.backends.server_child import at_end_of_input, die_with, parent_to_name
from jevexp.cli.perform import console, perform_member
from jevexp.core.json import dumps
from jevexp.harness.interrupts import Interrupted
from jevexp.run.planning import Launch
from jevexp.settings import Settings
from jevexp.untrusted.python import leave_safe_environment, python_module

_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_in_subprocess(settings: Settings, launch: Launch, *, number: int) -> None:
    """Perform a run in a process of its own and wait for its end.

    Raises Interrupted: a signal arrived and was passed on; the run ended in order.
    """
    job = {
        "parent": parent_to_name(),
        "settings": settings.resolved(),
        "directory": str(launch.directory),
        "sweep": str(launch.sweep) if launch.sweep else None,
        "overrides": list(launch.overrides),
        "number": number,
    }
    arrived: list[int] = []
    process: subprocess.Popen[bytes] | None = None

    def pass_on(signum: int, _frame: FrameType | None) -> None:
        arrived.append(signum)
        if process is not None:
            process.send_signal(signum)

    is_main = threading.current_thread() is threading.main_thread()
    previous = {signum: signal.signal(signum, pass_on) for signum in _STOPS if is_main}
    try:
        process = subprocess.Popen(
            python_module("jevexp.cli.run_in_subprocess"),
            stdin=subprocess.PIPE,
            # Signals of a terminal arrive once, through us.
            start_new_session=True,
        )
        assert process.stdin is not None  # noqa: S101 - for the type checker
        with suppress(BrokenPipeError):
            process.stdin.write(dumps(job).encode() + b"\n")
            process.stdin.flush()
        status = process.wait()
        process.stdin.close()
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)
    if arrived:
        raise Interrupted(arrived[0])
    if status < 0:
        name = signal.Signals(-status).name
        console.print(f"{launch.directory.name}: killed by {name}; what it had is kept")
    elif status:
        console.print(f"{launch.directory.name}: its process ended with status {status}")


def main() -> int:
    """Perform the run that standard input describes."""
    leave_safe_environment()
    job = json.loads(sys.stdin.buffer.readline())
    # A worker that is gone ends its run in order.
    die_with(job["parent"], signal.SIGTERM)
    at_end_of_input(lambda: os.kill(os.getpid(), signal.SIGTERM))
    settings = Settings.of(job["settings"])
    launch = Launch(
        directory=Path(job["directory"]),
        sweep=Path(job["sweep"]) if job["sweep"] else None,
        overrides=tuple(job["overrides"]),
    )
    try:
        perform_member(settings, launch, number=job["number"])
    except Interrupted as signalled:
        return signalled.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
