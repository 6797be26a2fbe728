"""Whether `jevexp verify` sees every changed byte of a run: thousands of changes, one at a time.

A run of the demo tasks is made, and then one byte at a random place is replaced by another, taken
out or put in; after each change the run is verified and the change undone. Prints counts a file;
exit status 1 when a change in a covered file went unseen.
"""

import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.support.cli import jevexp, only_run
from tests.support.forgery import change_one_byte

from jevexp.verification import State, verify_run

REPLACED = 2400
MOVED = 300
SEED = 1


def main() -> int:
    """Make a run, change it, print what was seen."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        done = jevexp("dataset=demo", "backend=fake", "backend.mode=noise", "tracking=none",
                      cwd=place)  # fmt: skip
        if done.status:
            sys.exit(f"error: the run failed: {done.err}")
        return report(*tamper(only_run(place / "outputs"), random.Random(SEED)))  # noqa: S311


def tamper(run: Path, draw: random.Random) -> tuple[Counter[str], Counter[str], float]:
    """Changes made and changes seen, by kind of file, and seconds a verification."""
    files = sorted(path for path in run.rglob("*") if path.is_file())
    # Half of the changes by file, so that small ones get their share, half by size.
    sizes = [path.stat().st_size for path in files]
    chosen = [
        *draw.choices(files, k=REPLACED // 2),
        *draw.choices(files, weights=sizes, k=REPLACED - REPLACED // 2),
    ]
    made: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    started = time.perf_counter()
    for path in chosen:
        before = change_one_byte(path, draw)
        note(run, path, "", made, seen)
        path.write_bytes(before)
    for path in draw.choices(files, k=MOVED):
        before = path.read_bytes()
        at = draw.randrange(len(before))
        added = draw.choice([b"", bytes([draw.randrange(256)])])
        path.write_bytes(before[:at] + added + before[at + (not added) :])
        note(run, path, " (a byte more or less)", made, seen)
        path.write_bytes(before)
    if verify_run(run).state is not State.VERIFIED:
        sys.exit("error: the undone changes left something behind")
    return made, seen, (time.perf_counter() - started) / (len(chosen) + MOVED)


def note(run: Path, path: Path, what: str, made: Counter[str], seen: Counter[str]) -> None:
    """Count one change."""
    name = path.relative_to(run)
    kind = f"{'raw/…' if name.parts[0] == 'raw' else name.as_posix()}{what}"
    made[kind] += 1
    seen[kind] += verify_run(run).state is State.FAILED


def report(made: Counter[str], seen: Counter[str], seconds: float) -> int:
    """Print the counts; 1 when a change went unseen."""
    table = Table("file", "changes", "seen")
    for kind in sorted(made):
        table.add_row(kind, str(made[kind]), str(seen[kind]))
    table.add_row("all", str(made.total()), str(seen.total()), style="bold")
    console = Console()
    console.print(table)
    console.print(f"{seconds * 1000:.0f} ms a verification; seed {SEED}")
    return 0 if made == seen else 1


if __name__ == "__main__":
    sys.exit(main())
