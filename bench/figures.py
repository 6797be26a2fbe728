"""The figures that benchmarks claim something about, for one table of all of them at the end."""

import json
import os
from pathlib import Path

VARIABLE = "JEVEXP_BENCH_FIGURES"


def figure(what: str, measured: str, goal: str = "", *, met: bool = True) -> None:
    """Note what was measured beside its goal; only `python bench/together.py` asks for it."""
    if path := os.environ.get(VARIABLE):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps([what, measured, goal, met]) + "\n")
