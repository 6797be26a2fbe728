"""How soon the first decision is made, against what importing MLflow alone takes.

A run is logged to MLflow only after its directory is complete, so nobody waits for that import
before the first request. Both are whole processes, started in turn; the first decision's time is
the `ts` of the first record.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import figure

ROUNDS = 10
GOAL = 1.0


def first_decision() -> float:
    """Seconds from the start of a tracked run to its first durable record."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.time()
        subprocess.run(
            [
                sys.executable, "-m", "jevexp", "dataset=demo", "backend=fake", "tracking=mlflow",
                "caps.limit=1", f"outputs={folder}",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        (results,) = Path(folder).glob("*/*/results.jsonl")
        record = json.loads(results.read_text().splitlines()[0])
        return float(record["ts"]) - started


def mlflow_import() -> float:
    """Seconds that a process needs to import MLflow and nothing else."""
    started = time.time()
    subprocess.run([sys.executable, "-c", "import mlflow"], check=True)
    return time.time() - started


def main() -> int:
    """Print both medians and their ratio; 1 when the goal is missed."""
    first_decision(), mlflow_import()  # warm the file cache
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(first_decision())
        theirs.append(mlflow_import())
    ours_median, theirs_median = statistics.median(ours), statistics.median(theirs)
    ratio = ours_median / theirs_median
    print(f"start-up, medians of {ROUNDS} rounds")
    print(f"  first decision of a tracked run  {ours_median:.3f} s")
    print(f"  import mlflow alone              {theirs_median:.3f} s")
    print(f"  ratio                            {ratio:.2f} (goal: below {GOAL:.2f})")
    met = ratio < GOAL
    figure(
        "first decision of a tracked run, to importing mlflow",
        f"× {ratio:.2f}",
        f"below {GOAL:.2f}",
        met=met,
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
