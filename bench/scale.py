"""A long run: time, memory and disk as they grow with the number of tasks.

    python bench/scale.py [TASKS] [FOLDER]

100,000 tasks on the offline provider, which answers at once, so that all that is measured is
jevexp and the disk below FOLDER (the system's temporary one). What is shown of time is per task,
with the time that the disk took to force things down beside it: nothing of that is saved.
"""

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figures import figure
from rich.console import Console
from rich.table import Table
from tasks import write_tasks

TASKS = 100_000
# The last tenth of the run against its first tenth.
MOST_SLOWER = 1.5
# What the process may grow by while it asks: the ledger knows every reservation by its id.
MOST_GROWTH_BYTES = 512
_SAMPLE_S = 0.2


@dataclass(frozen=True, slots=True)
class Watched:
    """A finished command: seconds, and its resident memory in bytes, sample by sample."""

    seconds: float
    resident: list[tuple[float, int]]

    @property
    def peak(self) -> int:
        """The most memory that it had."""
        return max((size for _, size in self.resident), default=0)


def main() -> int:
    """Measure one run and what is done with it afterwards; 1 when it does not stay flat."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else TASKS
    where = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        return measure(Path(folder), count)


def measure(folder: Path, count: int) -> int:
    """Run, look at it with every verb, print a table."""
    data = write_tasks(folder / "tasks.jsonl", count)
    own = [sys.executable, str(Path(__file__).with_name("timed.py")), str(folder / "waited.json")]
    asked = watch(
        [*own, "dataset=local", f"dataset.path={data}", "caps=unmetered", "tracking=none",
         f"outputs={folder / 'outputs'}"],
        folder,
    )  # fmt: skip
    waited = json.loads((folder / "waited.json").read_text())
    (run,) = (folder / "outputs").glob("*/*/")
    stamps = [json.loads(line)["ts"] for line in (run / "results.jsonl").open()]
    tenth = max(1, count // 10)
    first = (stamps[tenth - 1] - stamps[0]) / tenth
    last = (stamps[-1] - stamps[-tenth]) / tenth
    asking = [size for at, size in asked.resident if stamps[0] < at < stamps[-1]]
    # What is used first is in the first tenth.
    growth = (asking[-1] - asking[len(asking) // 10]) / (0.9 * count) if len(asking) > 10 else 0.0
    table = Table(f"{count:,} tasks, fake", "measured", "goal")
    table.add_row("from start to end", f"{asked.seconds:.0f} s", "")
    table.add_row("until the first record", f"{stamps[0] - (asked.resident[0][0]):.1f} s", "")
    table.add_row("a task, first tenth", f"{first * 1000:.2f} ms", "")
    table.add_row(
        "a task, last tenth", f"{last * 1000:.2f} ms", f"at most {MOST_SLOWER} × the first"
    )
    table.add_row(
        "a task, forcing to disk",
        f"{1000 * waited['fsync_s'] / count:.2f} ms in {waited['fsyncs'] / count:.1f} fsyncs",
        "",
    )
    table.add_row("peak memory", f"{asked.peak / 2**20:.0f} MB", "")
    table.add_row(
        "memory while asking", f"{growth:+.0f} bytes a task", f"at most {MOST_GROWTH_BYTES}"
    )
    for name, size in disk(run).items():
        table.add_row(f"on disk, {name}", f"{size / count:,.0f} bytes a task", "")
    for words in (["summarize", str(run)], ["list", "--outputs", str(folder / "outputs")],
                  ["verify", str(run)],
                  ["export", str(run), "--uri", f"sqlite:///{folder}/mlflow.db"]):  # fmt: skip
        done = watch([sys.executable, "-m", "jevexp", *words], folder)
        table.add_row(f"jevexp {words[0]}", f"{done.seconds:.1f} s, {done.peak / 2**20:.0f} MB", "")
    seen = watch(["ls", str(run / "raw")], folder)
    table.add_row("ls raw", f"{seen.seconds:.1f} s", "")
    Console().print(table)
    steady, flat = last <= MOST_SLOWER * first, growth <= MOST_GROWTH_BYTES
    what = f"{count:,} tasks"
    figure(f"{what}: a task, first tenth", f"{first * 1000:.2f} ms")
    figure(
        f"{what}: a task, last tenth",
        f"{last * 1000:.2f} ms",
        f"at most {MOST_SLOWER} × the first",
        met=steady,
    )
    figure(
        f"{what}: memory while asking",
        f"{growth:+.0f} bytes a task",
        f"at most {MOST_GROWTH_BYTES}",
        met=flat,
    )
    figure(f"{what}: time, peak memory", f"{asked.seconds:.0f} s, {asked.peak / 2**20:.0f} MB")
    figure(f"{what}: on disk", f"{sum(disk(run).values()) / 1e6:.0f} MB")
    return 0 if steady and flat else 1


def watch(command: list[str], folder: Path) -> Watched:
    """Run a command in `folder` and look at its memory until it ends."""
    started = time.time()
    resident = [(started, 0)]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as process:
        status = Path(f"/proc/{process.pid}/statm")
        while process.poll() is None:
            try:
                pages = int(status.read_text().split()[1])
            except (OSError, IndexError):
                break
            resident.append((time.time(), pages * 4096))
            time.sleep(_SAMPLE_S)
    if process.returncode:
        raise SystemExit(f"{' '.join(command[:4])} … ended with {process.returncode}")
    return Watched(time.time() - started, resident)


def disk(run: Path) -> dict[str, Any]:
    """Bytes that a run takes: what its files hold, and the blocks that raw evidence fills."""
    raw = [path.stat() for path in (run / "raw").iterdir()]
    files = {path.name: path.stat().st_size for path in run.iterdir() if path.is_file()}
    return {
        "raw": sum(one.st_size for one in raw),
        "raw in blocks": sum(one.st_blocks * 512 for one in raw),
        **{name: files[name] for name in ("results.jsonl", "ledger.jsonl", "checksums.sha256")},
    }


if __name__ == "__main__":
    sys.exit(main())
