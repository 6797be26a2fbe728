"""The process between us and a server's command: `python -m jevexp.backends.server.guard`.

Standard input carries one JSON line with the command and is then held open. The command runs in
this process's group, so that the processes it starts are ended with it: when it ends itself, when
we are told to end, and when our parent is gone. Everything that it prints goes into the log, which
is our standard output and error.
"""

import json
import os
import signal
import subprocess
import sys
import threading

from jevexp.backends.server.process import die_with, wait_for_end_of_input

# Shorter than what the parent grants us.
_GRACE_S = 2.0


def main() -> None:
    """Run the command until it or its reason to run ends."""
    asked = json.loads(sys.stdin.readline())
    guard = os.getpid()
    told, over = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    die_with(asked["parent"], signal.SIGTERM)
    try:
        process = subprocess.Popen(
            asked["command"],
            stdin=subprocess.DEVNULL,
            # Should somebody kill this process, at least the command itself ends too.
            preexec_fn=lambda: die_with(guard, signal.SIGKILL),  # noqa: PLW1509 - no threads yet
        )
    except OSError as error:
        sys.exit(f"{asked['command'][0]}: {error.strerror}")
    threading.Thread(target=_set_at_end_of_input, args=(told,), daemon=True).start()
    threading.Thread(target=_set_at_exit, args=(process, told, over), daemon=True).start()
    told.wait()
    # From here on also what the group is sent reaches only the others.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    over.wait(_GRACE_S)
    os.killpg(0, signal.SIGKILL)


def _set_at_end_of_input(told: threading.Event) -> None:
    wait_for_end_of_input()
    told.set()


def _set_at_exit(
    process: "subprocess.Popen[bytes]", told: threading.Event, over: threading.Event
) -> None:
    process.wait()
    over.set()
    told.set()


if __name__ == "__main__":
    main()
