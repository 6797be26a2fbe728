"""Reads every file named on the command line; prints what came of each, the time and the peak.

A process of its own, so that the memory is that of reading and of nothing else.
"""

import json
import resource
import sys
import time
from pathlib import Path

from jevexp.identity import WeightsError, read_header


def main() -> None:
    """One JSON list: processor seconds and message by file, and the process's peak in bytes."""
    read_header(Path(sys.argv[1]))  # a good one, so that imports are not counted
    refused = {}
    for name in sys.argv[2:]:
        started = time.process_time()
        try:
            message = f"read: {read_header(Path(name))}"
        except WeightsError as error:
            message = str(error)
        refused[name] = (time.process_time() - started, message)
    print(json.dumps([refused, _peak_bytes()]))


def _peak_bytes() -> int:
    """The most memory that this program had resident.

    Linux hands `ru_maxrss` down from the process that started this one, which may be larger.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
