"""One cap of 500 requests under many processes that are killed at random, and a database restart.

A short version is in the tests. Checked afterwards: at no row more than the cap was charged or
reserved, all of it was used, and whatever a process was told is there.
"""

import sys
import tempfile
import threading
from pathlib import Path

from tests.support.hammered import hammer
from tests.support.postgres import postgres

REQUESTS = 500
KILLS = 150
RESTART_AFTER_S = 5.0


def main() -> int:
    """Hammer a file, SQLite and PostgreSQL in turn, and print the numbers of each."""
    with tempfile.TemporaryDirectory() as folder, postgres() as server:
        place = Path(folder)
        cases = (
            ("file", 8, str(place / "ledger.jsonl")),
            ("SQLite", 8, f"sqlite:///{place / 'ledger.db'}"),
            ("PostgreSQL, restarted once", 16, server.url),
        )
        for seed, (name, processes, where) in enumerate(cases):
            notes = place / f"notes-{seed}"
            notes.mkdir()
            restart = threading.Timer(RESTART_AFTER_S, server.restart)
            numbers = hammer(
                where,
                notes,
                processes=processes,
                requests=REQUESTS,
                kills=KILLS,
                seed=seed,
                meanwhile=restart.start if "restarted" in name else lambda: None,
            )
            if "restarted" in name:
                restart.join()
            said = ", ".join(f"{what} {value}" for what, value in numbers.items())
            print(f"{name}: {processes} processes, cap {REQUESTS}: {said}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
