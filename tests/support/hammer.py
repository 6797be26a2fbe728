"""Many processes that spend from one ledger and are killed at random, for tests and benchmarks.

python -m tests.support.hammer PLACE FOLDER --processes N --requests N --kills N --seed N

Every process notes what it was told: a reservation before its request, a settlement after it. Each
request costs one dollar, the cap is the number of requests, and killed processes are replaced until
the cap is reached. The last line on standard output is a JSON object of numbers.
"""

import argparse
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from jevexp.errors import InputError
from jevexp.ledger.location import LedgerFile, LedgerLocation, ledger_database
from jevexp.ledger.state import CapReached, LedgerUnavailable

_PAUSE_S = 0.004
# The two lines of a request, in bytes.
_NOTED = len("reserved \nsettled \n") + 2 * 32


def place_of(text: str) -> LedgerLocation:
    """The ledger that a command line names."""
    return ledger_database(text, None) if "://" in text else LedgerFile(Path(text))


def spend(place: LedgerLocation, cap: float, notes: Path, seed: int) -> None:
    """Reserve, pretend to ask, settle, until the cap is reached; what was told is noted."""
    chance = random.Random(seed)
    with notes.open("a", buffering=1) as told:
        while True:
            try:
                with place.open(cap) as ledger:
                    while True:
                        name = ledger.reserve(1.0, {"task_id": "t", "adapter": "hammer"})
                        told.write(f"reserved {name}\n")
                        time.sleep(chance.random() * _PAUSE_S)
                        ledger.settle(name, 1.0, {"task_id": "t", "basis": "hammer"})
                        told.write(f"settled {name}\n")
            except CapReached:
                return
            except (InputError, LedgerUnavailable):
                # The database is being restarted: whoever opens it then is refused at once.
                time.sleep(0.1)


class Crowd:
    """The processes, forked from this one, which has loaded everything already."""

    def __init__(self, place: LedgerLocation, cap: float, folder: Path) -> None:
        self._place = place
        self._cap = cap
        self._folder = folder
        self._started = 0
        self.living: set[int] = set()
        self.failed = 0

    def start(self) -> None:
        """Fork one more."""
        self._started += 1
        pid = os.fork()
        if pid:
            self.living.add(pid)
            return
        status = 1
        try:
            spend(self._place, self._cap, self._folder / f"{self._started}.txt", self._started)
            status = 0
        finally:
            os._exit(status)

    def reap(self) -> list[int]:
        """The exit statuses of those that ended since the last look; killed ones are not there."""
        ended = []
        for pid in list(self.living):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                self.living.discard(pid)
                if not os.WIFSIGNALED(status):
                    ended.append(os.waitstatus_to_exitcode(status))
        return ended

    def told(self) -> int:
        """About how many requests the processes have noted."""
        size = sum(notes.stat().st_size for notes in self._folder.iterdir())
        return size // _NOTED

    def kill_one(self, chance: random.Random) -> None:
        """Kill any of them where it stands, and start another in its place."""
        os.kill(chance.choice(sorted(self.living)), signal.SIGKILL)
        self.start()


def main() -> int:
    """Hammer until the cap is reached and nobody is left."""
    parser = argparse.ArgumentParser()
    parser.add_argument("place")
    parser.add_argument("folder", type=Path)
    for name in ("--processes", "--requests", "--kills", "--seed"):
        parser.add_argument(name, type=int, required=True)
    arguments = parser.parse_args()
    place = place_of(arguments.place)
    # The parent loads what the children need, and keeps nothing open.
    place.open(1.0, read_only=False).close()
    chance = random.Random(arguments.seed)
    crowd = Crowd(place, float(arguments.requests), arguments.folder)
    started, kills, failed = time.monotonic(), 0, 0
    for _ in range(arguments.processes):
        crowd.start()
    print("hammering", flush=True)
    while crowd.living:
        failed += sum(status != 0 for status in crowd.reap())
        # Spread over the work, however fast it goes.
        due = arguments.kills * (crowd.told() + 1) / arguments.requests
        while kills < min(due, arguments.kills) and crowd.living:
            crowd.kill_one(chance)
            kills += 1
        time.sleep(chance.uniform(0.001, 0.02))
    seconds = time.monotonic() - started
    print(json.dumps({"kills": kills, "failed": failed, "seconds": round(seconds, 2)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
