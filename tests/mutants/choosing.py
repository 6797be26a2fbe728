"""Which tests are run against a mutant: those that run its line, the quickest first."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from coverage import CoverageData

from tests.mutants.covering import DURATIONS, PLACE
from tests.mutants.mutate import Mutant
from tests.mutants.scratch import Scratch

# Kills, chance and other people's servers see a fault now and then, and not the same one twice.
LEFT_OUT = ("-m", "not live", "--ignore=tests/crash", "--ignore=tests/fuzz")


class TestMap:
    """The tests that run each line of the program."""

    __test__ = False

    def __init__(self, folder: Path, source: Path) -> None:
        self._source = source
        self._durations: dict[str, float] = json.loads((folder / DURATIONS).read_text())
        self._lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for file in folder.glob("coverage.*"):
            data = CoverageData(str(file))
            data.read()
            for measured in data.measured_files():
                lines = self._lines[measured]
                for line, contexts in data.contexts_by_lineno(measured).items():
                    lines[line].update(filter(None, contexts))

    def tests(self, mutant: Mutant, budget_s: float) -> list[str]:
        """The tests to run, the quickest first, together no longer than the budget in seconds."""
        lines = self._lines[str(self._source / mutant.path)]
        contexts = set[str]()
        for line in range(mutant.line, mutant.last_line + 1):
            contexts |= lines[line]
        if not mutant.function or not contexts:
            # Run when the module is imported, for all who use it.
            contexts = set[str]().union(*lines.values())
        chosen = []
        for test in sorted(self._wanted(contexts), key=self._durations.__getitem__):
            budget_s -= self._durations[test]
            if budget_s < 0:
                break
            chosen.append(test)
        return chosen

    def _wanted(self, contexts: Iterable[str]) -> set[str]:
        wanted = set[str]()
        for context in contexts:
            test, _, phase = context.rpartition("|")
            wanted.add(test)
            if phase == "setup":
                # What a fixture made once, the other tests of the file look at as well.
                file = test.partition("::")[0] + "::"
                wanted |= {other for other in self._durations if other.startswith(file)}
        return wanted & self._durations.keys()


def make_map(scratch: Scratch, cache: Path, tests: Sequence[str], workers: int) -> TestMap:
    """Run the tests once and note what they run; a map of the same files is not made again."""
    name = hashlib.sha256("\n".join([scratch.digest(), *tests]).encode()).hexdigest()[:16]
    folder = cache / name
    if not (folder / DURATIONS).exists():
        folder.mkdir(parents=True, exist_ok=True)
        print("finding out which tests run which lines (some minutes)", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.covering", *LEFT_OUT]
        done = subprocess.run(
            [*command, "--numprocesses", str(workers), *tests],
            cwd=scratch.path,
            env=scratch.environment() | {PLACE: str(folder)},
            check=False,
        )
        if done.returncode > 1:
            shutil.rmtree(folder)
            sys.exit("--tests: pytest could not run them; see above")
        if done.returncode:
            print("some tests fail without any fault; they are left out", flush=True)
        # The paths in it are those of the copy.
        (folder / "source").write_text(os.fspath(scratch.path))
    return TestMap(folder, Path((folder / "source").read_text()))
