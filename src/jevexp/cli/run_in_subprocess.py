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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

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

    Raises:
        Interrupted: a signal arrived and was passed on; the run ended in order.
    """
    job = {
        "parent": parent_to_name(),
        "settings": settings.resolved(),
        "directory": str(launch.directory),
        "sweep": str(launch.sweep) if launch.sweep else None,
        "overrides": list(launch.overrides),
        "number": number,
    }
    with _signals_passed_on() as stops:
        process = subprocess.Popen(
            python_module("jevexp.cli.run_in_subprocess"),
            stdin=subprocess.PIPE,
            # Signals of a terminal arrive once, through us.
            start_new_session=True,
        )
        stops.process = process
        assert process.stdin is not None  # noqa: S101 - for the type checker
        with suppress(BrokenPipeError):
            process.stdin.write(dumps(job).encode() + b"\n")
            process.stdin.flush()
        status = process.wait()
        process.stdin.close()
    if stops.arrived is not None:
        raise Interrupted(stops.arrived)
    if status < 0:
        name = signal.Signals(-status).name
        console.print(f"{launch.directory.name}: killed by {name}; what it had is kept")
    elif status:
        console.print(f"{launch.directory.name}: its process ended with status {status}")


@dataclass
class _Stops:
    """Stop signals for the process below; the first one that arrived is remembered."""

    process: "subprocess.Popen[bytes] | None" = None
    arrived: int | None = None
    previous: dict[int, Any] = field(default_factory=dict)

    def receive(self, signum: int, _frame: FrameType | None) -> None:
        self.arrived = self.arrived or signum
        if self.process is not None:
            self.process.send_signal(signum)


@contextmanager
def _signals_passed_on() -> Iterator[_Stops]:
    stops = _Stops()
    if threading.current_thread() is threading.main_thread():
        stops.previous = {signum: signal.signal(signum, stops.receive) for signum in _STOPS}
    try:
        yield stops
    finally:
        for signum, handler in stops.previous.items():
            signal.signal(signum, handler)


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
