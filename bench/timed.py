"""jevexp in this process, with the time that it waits for the disk.

    python bench/timed.py FILE ARGUMENT...

The arguments are jevexp's; FILE gets how often and how long something was forced to disk.
"""

import json
import os
import sys
import time
from pathlib import Path

_fsync = os.fsync
waited = {"fsyncs": 0, "fsync_s": 0.0}


def fsync(descriptor: int) -> None:
    """Force to disk, and count."""
    started = time.perf_counter()
    _fsync(descriptor)
    waited["fsync_s"] += time.perf_counter() - started
    waited["fsyncs"] += 1


os.fsync = fsync

if __name__ == "__main__":
    from jevexp.cli.main import main

    report, *arguments = sys.argv[1:]
    status = main(arguments)
    Path(report).write_text(json.dumps(waited))
    sys.exit(status)
