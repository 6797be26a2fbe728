"""Every benchmark, one after the other on one machine, and one table of their figures."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import VARIABLE
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
PARTS: tuple[tuple[str, ...], ...] = (
    ("bench/startup.py",),
    ("bench/readout.py",),
    ("-m", "bench.native"),
    ("bench/ledger.py",),
    ("bench/concurrency.py",),
    ("bench/slots.py",),
    ("bench/scale.py", "20000"),
    ("bench/compare.py",),
    ("bench/report.py",),
    ("-m", "bench.verify", "5000"),
    ("-m", "bench.tracking_server"),
)


def main() -> int:
    """Run them all, whatever one of them finds; 1 when a goal is missed or a benchmark failed."""
    table = Table("benchmark", "figure", "measured", "goal")
    missed = 0
    for part in PARTS:
        name = next(word for word in part if word.startswith("bench"))
        print(f"\n{name}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            noted = Path(folder) / "figures"
            started = time.monotonic()
            done = subprocess.run(
                [sys.executable, *part],
                cwd=ROOT,
                env=os.environ | {VARIABLE: str(noted)},
                check=False,
            )
            seconds = time.monotonic() - started
            lines = noted.read_text().splitlines() if noted.exists() else []
        for what, measured, goal, met in map(json.loads, lines):
            table.add_row(name, what, measured if met else f"[bold red]{measured}", goal)
            name = ""
        missed += done.returncode != 0
        table.add_row(name, "took", f"{seconds:.0f} s", "", end_section=True)
    console = Console()
    console.print(table)
    ending = f"{missed} of {len(PARTS)} missed a goal" if missed else "every goal is met"
    console.print(ending)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
