"""Reads one file of 8 GiB without a line end as whatever a run or a person may have; prints all.

A process of its own, so that the memory is that of reading and of nothing else.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from jevexp.backends.replay import read_answers, read_run
from jevexp.datasets import load_tasks
from jevexp.errors import InputError
from jevexp.ledger.file import FileLedger
from jevexp.ledger.state import LedgerError
from jevexp.store import RunDirectory
from tests.support.memory import peak_bytes


def main() -> None:
    """One JSON list: what each reader said, and the peak in bytes."""
    folder = Path(sys.argv[1])
    readers: dict[str, Callable[[Path], object]] = {
        "tasks.jsonl": load_tasks,
        "answers.jsonl": read_answers,
        "ledger.jsonl": lambda path: FileLedger(path, 1.0, read_only=True),
        "results.jsonl": lambda path: list(RunDirectory(path.parent).records()),
        "manifest.json": lambda path: RunDirectory(path.parent).read_manifest(),
        "summary.json": lambda path: RunDirectory(path.parent).read_summary(),
        "checksums.sha256": lambda path: read_run(path.parent),
    }
    said = {}
    for name, read in readers.items():
        path = folder / name
        with path.open("wb") as file:
            file.write(b'{"event": "')
            file.truncate(8 << 30)
        try:
            read(path)
        except (InputError, LedgerError, ValueError) as error:
            said[name] = str(error)
    print(json.dumps([said, peak_bytes()]))


if __name__ == "__main__":
    main()
