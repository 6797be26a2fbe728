"""`make mutants`: puts small faults into a copy of the program and counts which the tests see."""

import argparse
import os
import random
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.choosing import TestMap, make_map
from tests.mutants.mutate import Mutant, mutants
from tests.mutants.scratch import ROOT, Scratch

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
KILLED, SURVIVED, MARKED = "killed", "survived", "equivalent"


def main() -> int:
    """Draw mutants, run each against the tests of its line, print what came of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=60, help="how many mutants are drawn")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument(
        "--modules", nargs="+", default=[""], metavar="PART",
        help="files and folders below src/jevexp, such as harness or store/files.py",
    )  # fmt: skip
    parser.add_argument("--kinds", nargs="+", default=[""], help="beginnings of kinds of fault")
    parser.add_argument("--tests", nargs="+", default=[], help="only these files or folders")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of tests a mutant")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--at-least", type=float, default=90.0,
        help="per cent to be seen of those that are not marked as equivalent, for exit status 0",
    )  # fmt: skip
    arguments = parser.parse_args()
    started = time.monotonic()
    drawn = draw(arguments.modules, arguments.kinds, arguments.count, arguments.seed)
    with tempfile.TemporaryDirectory(prefix="jevexp-mutants-") as folder:
        copies: SimpleQueue[Scratch] = SimpleQueue()
        first = Scratch(Path(folder, "0"))
        copies.put(first)
        for number in range(1, arguments.workers):
            copies.put(Scratch(Path(folder, str(number))))
        cache = ROOT / "build" / "mutants"
        test_map = make_map(first, cache, arguments.tests, arguments.workers)
        verdicts = judge(drawn, copies, test_map, arguments.budget, arguments.workers)
    print_results(list(zip(drawn, verdicts, strict=True)))
    killed, survived, marked = map(verdicts.count, (KILLED, SURVIVED, MARKED))
    seen = 100 * killed / max(1, killed + survived)
    print(
        f"{len(drawn)} mutants, seed {arguments.seed}: {killed} killed, {survived} survived, "
        f"{marked} equivalent; {seen:.0f} % seen, {time.monotonic() - started:.0f} s"
    )
    return 0 if seen >= arguments.at_least else 1


def draw(modules: Sequence[str], kinds: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """A sample of the mutants of the modules, in the order of their lines."""
    package = ROOT / "src" / "jevexp"
    files = set[Path]()
    for part in modules:
        path = package / part
        found = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        if not all(file.is_file() for file in found):
            sys.exit(f"--modules {part}: not below {package}")
        files.update(found)
    every = [
        mutant
        for file in sorted(files)
        for mutant in mutants(file.relative_to(ROOT), file.read_text())
        if mutant.kind.startswith(tuple(kinds))
    ]
    drawn = random.Random(seed).sample(every, min(count, len(every)))
    print(f"{len(drawn)} of {len(every)} possible mutants in {len(files)} files", flush=True)
    return sorted(drawn, key=lambda one: (one.path, one.line, one.kind))


def judge(
    drawn: Sequence[Mutant],
    copies: "SimpleQueue[Scratch]",
    test_map: TestMap,
    budget_s: float,
    workers: int,
) -> list[str]:
    """What came of each mutant."""
    known = {
        (entry["function"], entry["before"], entry["after"])
        for entry in tomllib.loads(EQUIVALENT.read_text()).get("equivalent", [])
    }

    def verdict(mutant: Mutant) -> str:
        if (mutant.function, *mutant.changed) in known:
            return MARKED
        tests = test_map.tests(mutant, budget_s)
        scratch = copies.get()
        try:
            with scratch.changed(mutant.path, mutant.text):
                status = scratch.run(tests, 60 + 5 * budget_s) if tests else 0
        finally:
            copies.put(scratch)
        came = SURVIVED if status == 0 else KILLED
        print(f"{came:9} {mutant.path}:{mutant.line} {mutant.kind}, {len(tests)} tests", flush=True)
        return came

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(verdict, drawn))


def print_results(judged: Sequence[tuple[Mutant, str]]) -> None:
    """A line a module, then the survivors as diffs."""
    modules: dict[Path, Counter[str]] = defaultdict(Counter)
    for mutant, verdict in judged:
        modules[mutant.path][verdict] += 1
    width = max(len(str(path)) for path in modules)
    print(f"\n{'module':{width}}  {KILLED}  {SURVIVED}  {MARKED}")
    for path, counts in sorted(modules.items()):
        print(f"{path!s:{width}}  {counts[KILLED]:6}  {counts[SURVIVED]:8}  {counts[MARKED]:10}")
    print()
    for mutant, verdict in judged:
        if verdict == SURVIVED:
            print(f"{mutant.function or 'module'}:\n{mutant.diff}")


if __name__ == "__main__":
    sys.exit(main())
