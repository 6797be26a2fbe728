"""How long verifying a run of 100,000 tasks takes, and how much memory; or of as many as are given.

The run is made in this process without waiting for the disk, which is not what is measured. Then
`jevexp verify` runs as a process of its own, whose peak memory the system tells. Exit status 1
when it needs more than `MOST_BYTES`.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import figure
from tests.support.in_process import run_here

TASKS = 100_000
MOST_BYTES = 1 << 30


def main() -> int:
    """Make the run, verify it, print what that took."""
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else TASKS
    with tempfile.TemporaryDirectory() as folder:
        run, seconds = make_run(Path(folder), tasks)
        print(f"{tasks:,} tasks made in {seconds:.0f} s")
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "jevexp", "verify", str(run)],
            stdout=subprocess.PIPE,
            check=False,
        )
        seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(done.stdout.decode())
    print(f"verified in {seconds:.0f} s, {seconds / tasks * 1e3:.2f} ms a task")
    print(f"peak memory {peak / 2**20:.0f} MiB (goal: below {MOST_BYTES / 2**20:.0f} MiB)")
    figure(
        f"verify {tasks:,} tasks",
        f"{seconds:.0f} s, {peak / 2**20:.0f} MiB",
        f"{MOST_BYTES / 2**20:.0f} MiB",
        met=peak <= MOST_BYTES,
    )
    return done.returncode or int(peak > MOST_BYTES)


def make_run(folder: Path, tasks: int) -> tuple[Path, float]:
    """The directory of a finished run, and the seconds that it took."""
    path = folder / "tasks.jsonl"
    with path.open("w") as file:
        for number in range(tasks):
            file.write(json.dumps(task(number)) + "\n")
    # The disk's own time is not what is measured here.
    os.fsync = lambda _: None
    started = time.perf_counter()
    run = run_here(
        folder, "dataset=local", f"dataset.path={path}", "backend=fake", "backend.mode=noise",
        "caps=unmetered",
    )  # fmt: skip
    return run, time.perf_counter() - started


def task(number: int) -> dict[str, object]:
    """One of many tasks, all different."""
    return {
        "id": f"task-{number}",
        "family": f"family-{number % 6}",
        "state": {"ticket": number, "text": "The parcel came a week late, and was crushed. " * 5},
        "question": {
            "type": "choice",
            "instructions": "Who should handle it?",
            "criteria": {"sales": "Offers.", "technical": "Faults.", "billing": "Payments."},
        },
        "labels": ["sales", "technical", "billing"],
        "expected": "technical",
        "split": "public",
        "group": None,
        "provenance": {},
    }


if __name__ == "__main__":
    sys.exit(main())
