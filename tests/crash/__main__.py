"""The long version: `make crash`. Hundreds of kills, and a table of what came of them."""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.child import Kill
from tests.crash.fleet import PROCESSES, fleet
from tests.crash.points import NOTHING_TAKEN_OVER, POINTS, WHILE_TRACKING
from tests.crash.trial import TASKS, Tally, kills, trial


def main() -> int:
    """Kill, resume, check; 0 when nothing was lost and nothing counted twice."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--each", type=int, default=7, help="kills at every named point")
    parser.add_argument("--random", type=int, default=60, help="kills at random times")
    parser.add_argument("--fleets", type=int, default=4, help="times eight processes on one ledger")
    parser.add_argument("--seed", type=int, default=20261130)
    arguments = parser.parse_args()
    random_ = random.Random(arguments.seed)
    started = time.monotonic()
    alone, together = Tally(), Tally()
    with tempfile.TemporaryDirectory(prefix="jevexp-crash-") as folder:
        chosen = kills(random_, each=arguments.each, at_random=arguments.random, without=())
        for number, kill in enumerate(chosen):
            again = _again(random_)
            trial(Path(folder, str(number)), kill, alone, thorough=number % 5 == 0, again=again)
            if number % 25 == 24:
                print(f"{alone.kills} kills, {len(alone.faults)} faults", flush=True)
        for number in range(arguments.fleets):
            choices = kills(random_, each=1, at_random=12, without=(WHILE_TRACKING,))
            fleet(Path(folder, f"fleet-{number}"), random_, choices, together)
    for what, tally in (("one process", alone), (f"{PROCESSES} processes on a ledger", together)):
        print(
            f"{what}: {tally.kills} kills, {tally.answers_held} answers put aside, "
            f"{tally.recovered} of them without a record, {len(tally.faults)} lost, doubled or "
            "otherwise wrong"
        )
    print(
        f"{len(POINTS)} named points, runs of {TASKS} tasks, seed {arguments.seed}, "
        f"{time.monotonic() - started:.0f} s"
    )
    for fault in [*alone.faults, *together.faults]:
        print(f"  {fault}")
    return 1 if alone.faults or together.faults else 0


def _again(random_: random.Random) -> Kill | None:
    """How the first resumed session is killed, if it is."""
    chance = random_.random()
    if chance < 0.2:
        return Kill(after_s=random_.uniform(0.1, 0.6))
    return Kill(random_.choice(NOTHING_TAKEN_OVER)) if chance < 0.4 else None


if __name__ == "__main__":
    sys.exit(main())
