"""`make fuzz`: 100,000 cases in all, and a line a target. `--seed N` tries other ones."""

import argparse
import os
import tempfile
import time
from pathlib import Path

from tests.fuzz.running import run
from tests.fuzz.targets import TARGETS


def main() -> None:
    """Try every target; a violation ends it with the smallest case that shows it."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=102_000, help="in all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="TARGET", help="the targets whose name holds this")
    arguments = parser.parse_args()
    chosen = [target for target in TARGETS if (arguments.only or "") in target.name]
    whole = sum(target.share for target in chosen)
    total = 0
    for target in chosen:
        with tempfile.TemporaryDirectory(prefix="jevexp-fuzz-") as folder:
            os.environ["JEVEXP_CACHE"] = str(Path(folder) / "inside" / "cache")
            here = Path.cwd()
            started = time.monotonic()
            tried = run(
                target,
                -(-arguments.cases * target.share // whole),
                Path(folder),
                number=arguments.seed,
            )
            os.chdir(here)
        total += tried
        print(f"{target.name:<26}{tried:>8} cases {time.monotonic() - started:>8.1f} s", flush=True)
    print(f"{'all':<26}{total:>8} cases, no violation")


if __name__ == "__main__":
    main()
