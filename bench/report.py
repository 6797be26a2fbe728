"""How long the page of a comparison takes, how much memory, and how large it becomes.

The same runs as in the benchmark of comparisons, from directories on disk to the page and plots.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compare import CASES, Case, prepare
from figures import figure

MOST_BYTES = 10e6


def measure(folder: Path, case: Case) -> bool:
    """Print one case; whether its page is small enough."""
    runs = prepare(folder, case)
    page = folder / "report.html"
    command = [sys.executable, "-m", "jevexp", "compare", *map(str, runs), f"--html={page}"]
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    if status:
        raise SystemExit(f"compare ended with status {os.waitstatus_to_exitcode(status)}")
    unit = 1 if sys.platform == "darwin" else 1024
    size = page.stat().st_size
    print(
        f"  {case.runs} runs of {case.tasks} tasks: {seconds:.1f} s "
        f"({used.ru_utime + used.ru_stime:.1f} s of processor), "
        f"{used.ru_maxrss * unit / 1e9:.2f} GB, page {size / 1e6:.2f} MB"
    )
    figure(
        f"page of {case.runs} runs of {case.tasks:,} tasks",
        f"{seconds:.1f} s, {size / 1e6:.2f} MB",
        f"at most {MOST_BYTES / 1e6:.0f} MB",
        met=size <= MOST_BYTES,
    )
    return size <= MOST_BYTES


def main() -> int:
    """Measure each case; 1 when a page is larger than it may be."""
    print("compare --html, from disk to page and plots")
    small = True
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            small = measure(Path(folder), case) and small
    return 0 if small else 1


if __name__ == "__main__":
    sys.exit(main())
