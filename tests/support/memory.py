"""How much memory a program needed."""

import resource
from pathlib import Path


def peak_bytes() -> int:
    """The most memory that this process had resident, in bytes.

    Linux hands `ru_maxrss` down from the process that started this one, which may be larger.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
