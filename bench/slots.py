"""A real llama.cpp server with four slots, asked one thing at a time and four at once.

    python bench/slots.py [TASKS]

What is gained depends on the machine: a GPU computes several prompts together, a CPU that one
prompt keeps busy has nothing left for others. How far the probabilities move, since a server that
computes prompts together rounds another way, is shown as the largest total variation distance.
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figures import figure
from rich.console import Console
from rich.table import Table

SLOTS = 4
CONCURRENCIES = (1, SLOTS)


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: answers a second, and its records by task."""

    rate: float
    p50_s: float
    records: dict[str, dict[str, Any]]


def main() -> int:
    """Measure both, print a table; 1 when a run failed."""
    with tempfile.TemporaryDirectory() as folder:
        runs = {count: measure(Path(folder) / str(count), count) for count in CONCURRENCIES}
    alone = runs[1]
    table = Table(f"at once, {SLOTS} slots", "answers/s", "gain", "p50", "moved by", "other answer")
    for count, run in runs.items():
        table.add_row(
            str(count),
            f"{run.rate:.2f}",
            f"× {run.rate / alone.rate:.2f}",
            f"{run.p50_s:.3f} s",
            f"{max(distance(alone.records[name], run.records[name]) for name in run.records):.2g}",
            str(sum(
                alone.records[name]["predicted"] != run.records[name]["predicted"]
                for name in run.records
            )),
        )  # fmt: skip
    Console().print(table)
    for count, run in runs.items():
        figure(f"llama.cpp with {SLOTS} slots, {count} at once", f"{run.rate:.2f} answers/s")
    return 0


def measure(folder: Path, concurrency: int) -> Measured:
    """The demo's tasks, or the first ones of them, by the model of `make run`."""
    limit = sys.argv[1] if len(sys.argv) > 1 else "null"
    folder.mkdir()
    subprocess.run(
        [sys.executable, "-m", "jevexp", "dataset=demo", "backend=llama_cpp",
         "model=gemma3_270m_q4km", f"backend.server.slots={SLOTS}", "caps=unmetered",
            f"caps.limit={limit}",
         "tracking=none", f"runner.concurrency={concurrency}"],
        cwd=folder, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    (run,) = (folder / "outputs").glob("*/*/")
    rows = [json.loads(line) for line in (run / "ledger.jsonl").open()]
    records = [json.loads(line) for line in (run / "results.jsonl").open()]
    begun = next(row["ts"] for row in rows if row["event"] == "reserve")
    seconds = max(record["ts"] for record in records) - begun
    summary = json.loads((run / "summary.json").read_text())
    by_task = {record["task_id"]: record for record in records}
    return Measured(len(records) / seconds, summary["latency"]["p50_s"], by_task)


def distance(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Total variation distance between two records' distributions, from 0 to 1."""
    return sum(abs(one["probs"][label] - other["probs"][label]) for label in one["probs"]) / 2


if __name__ == "__main__":
    sys.exit(main())
