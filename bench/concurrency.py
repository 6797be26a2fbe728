"""How much of several requests at once a run makes use of.

A server answers every request in 50 ms, however many it is asked. The ideal for N requests at once
is N answers every 50 ms; what is missing is jevexp, HTTP, and the disk where it is waited for. What
a client that only sends and reads gets of the same server is shown beside it. With one request at a
time the protocol forces everything to disk before the next task starts, which is shown apart: no
run can be quicker than that and survive a power cut.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
from figures import figure
from rich.console import Console
from rich.table import Table
from tasks import write_tasks

ANSWER_S = 0.05
CONCURRENCIES = (1, 2, 4, 8)
ROUNDS = 100
GOAL = 0.95
HERE = Path(__file__).parent


def main() -> int:
    """Measure each concurrency, print a table; 1 when a goal is missed."""
    table = Table("at once", "answers/s", "of the ideal", "bare client", "disk, a task", "goal")
    missed = 0
    with tempfile.TemporaryDirectory() as folder, server(ANSWER_S) as url:
        for concurrency in CONCURRENCIES:
            rate, disk_s = measure(Path(folder) / str(concurrency), url, concurrency)
            # Only with one at a time does anybody wait for the disk.
            best = concurrency / ANSWER_S if concurrency > 1 else 1 / (ANSWER_S + disk_s)
            met = rate >= GOAL * best
            missed += not met
            figure(
                f"{concurrency} at once, answers in 50 ms, of the ideal",
                f"{rate * ANSWER_S / concurrency:.3f}"
                + (f" ({rate / best:.3f} with the disk)" if concurrency == 1 else ""),
                f"at least {GOAL}" + (" with the disk" if concurrency == 1 else ""),
                met=met,
            )
            table.add_row(
                str(concurrency),
                f"{rate:.1f}",
                f"{rate * ANSWER_S / concurrency:.3f}",
                f"{bare(url, concurrency) * ANSWER_S / concurrency:.3f}",
                f"{disk_s * 1000:.1f} ms",
                f"≥ {GOAL}" if concurrency > 1 else f"≥ {GOAL} with the disk ({rate / best:.3f})",
            )
    Console().print(table)
    return 1 if missed else 0


def bare(url: str, concurrency: int) -> float:
    """Answers a second that threads get which send one question again and again."""
    question = {"type": "noul", "instructions": "Is it?"}
    body = {"state": "It is.", "model": "slow", "questions": {"decision": question}}
    with (
        httpx.Client(base_url=url, trust_env=False) as client,
        ThreadPoolExecutor(concurrency) as threads,
    ):
        started = time.perf_counter()
        list(threads.map(lambda _: client.post("/v1/systemone", json=body),
                         range(ROUNDS * concurrency)))  # fmt: skip
        return ROUNDS * concurrency / (time.perf_counter() - started)


def measure(folder: Path, url: str, concurrency: int) -> tuple[float, float]:
    """Answers a second from the first reservation to the last record, and disk time a task."""
    folder.mkdir()
    count = ROUNDS * concurrency
    data = write_tasks(folder / "tasks.jsonl", count)
    subprocess.run(
        [sys.executable, str(HERE / "timed.py"), "waited.json",
         "dataset=local", f"dataset.path={data}", "backend=systemone", f"backend.base_url={url}",
         "backend.key_env=null", "model=unclaimed", "model.alias=slow", "caps=unmetered",
         "tracking=none", f"runner.concurrency={concurrency}"],
        cwd=folder, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    (run,) = (folder / "outputs").glob("*/*/")
    begun = next(row["ts"] for row in rows(run / "ledger.jsonl") if row["event"] == "reserve")
    ended = max(record["ts"] for record in rows(run / "results.jsonl"))
    waited = json.loads((folder / "waited.json").read_text())
    return count / (ended - begun), waited["fsync_s"] / count


def rows(path: Path) -> Iterator[dict[str, float]]:
    """The lines of a file."""
    with path.open() as file:
        yield from map(json.loads, file)


@contextmanager
def server(seconds: float) -> Iterator[str]:
    """The address of a server whose answers take `seconds`."""
    command = [sys.executable, str(HERE / "slow_server.py"), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = process.stdout.readline().strip() if process.stdout else ""
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


if __name__ == "__main__":
    sys.exit(main())
