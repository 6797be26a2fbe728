"""Runs a target a number of times; the same cases for the same seed."""

import sys
import tempfile
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.fuzz.targets import Target
from tests.fuzz.watch import watched


def run(target: Target, cases: int, place: Path, *, number: int = 0) -> int:
    """Try a target and return how many cases that were; the first violation is raised.

    Args:
        target: what is tried.
        cases: at most so many cases.
        place: a folder for its files; what it writes elsewhere is a violation.
        number: the seed.
    """
    inside, examples = place / "inside", place / "hypothesis"
    inside.mkdir()
    set_hypothesis_home_dir(examples)
    tempfile.tempdir = str(inside)
    tried = 0
    sys.dont_write_bytecode = True
    with target.ready(inside) as case:

        @seed(number)
        @settings(
            max_examples=cases,
            deadline=None,
            database=DirectoryBasedExampleDatabase(examples / "examples"),
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(st.integers(0, 2**63 - 1))
        def attempt(number: int) -> None:
            nonlocal tried
            tried += 1
            with watched(inside, examples):
                case(Random(number))

        try:
            attempt()
        finally:
            set_hypothesis_home_dir(None)
            tempfile.tempdir = None
    assert sorted(path.name for path in place.iterdir()) in (["inside"], ["hypothesis", "inside"])
    return tried
