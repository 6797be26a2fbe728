"""A run of several requests at once in a process that can be killed: FOLDER SEED."""

import random
import sys
import time
from pathlib import Path

from jevexp.core.decision import Decision
from tests.harness.concurrent.bench import YES, Bench, Provider, many

CONCURRENCY = 4


def main() -> None:
    """Run until somebody ends it."""
    folder, seed = sys.argv[1:]
    draw = random.Random(seed)

    def step(number: int) -> Decision:
        time.sleep(draw.expovariate(1 / 0.004))
        return YES

    bench = Bench(Path(folder))
    print("ready", flush=True)
    bench.run(Provider(step), many(100_000), CONCURRENCY)


if __name__ == "__main__":
    main()
