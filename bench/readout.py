"""What reading a distribution costs: `python bench/readout.py`, on the demo's model.

Three ways of asking the same server about the same prompt, in turn. The prompt is short, since the
shorter it is, the more of a decision's time is the readout's:

    decide      a whole decision: the template, the candidates, the readout
    bare        one predicted token of the same prompt and no probabilities
    vocabulary  the probabilities of the whole vocabulary, from which options could be picked too

Exit status 1 when a decision costs more than `MOST_OVER_BARE` times a bare token, or when the
whole vocabulary costs less than `LEAST_SAVING` times a decision.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import httpx
from figures import figure
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from rich.console import Console
from rich.table import Table

from jevexp.backends.llama_cpp import LlamaCpp
from jevexp.backends.llama_cpp.server import ManagedServer
from jevexp.backends.llama_cpp.weights import find_weights
from jevexp.core.decision import Request
from jevexp.core.task import Kind, Question
from jevexp.errors import InputError
from jevexp.settings import LlamaCppBackend, ModelIdentity

MOST_OVER_BARE = 1.10
LEAST_SAVING = 8.0
REPETITIONS = 36
WARM_UP = 3
ROOT = Path(__file__).resolve().parent.parent
BARE = {"n_predict": 1, "cache_prompt": False}
REQUEST = Request(
    state="The parcel came a week late, and the box was crushed.",
    question=Question(type=Kind.NOUL, instructions="Does the customer complain?"),
    model="benchmark",
)


def main() -> int:
    """Measure, print a table, compare with the goals."""
    settings, model = configured()
    weights = find_weights(model)
    if weights is None:
        raise InputError("model.weights: the benchmark needs a model with weights")
    with tempfile.TemporaryDirectory() as directory:
        server = ManagedServer(weights, model.alias, settings.server)
        # One that asks for no key, as the requests past the provider have none.
        server.key = ""
        try:
            url = server.start(Path(directory))
            running = settings.server.model_copy(update={"base_url": url})
            backend = LlamaCpp(settings.model_copy(update={"server": running}), model)
            times = measure(backend.open(Path(directory)), url)
            backend.close()
        finally:
            server.stop()
    return report(times)


def configured() -> tuple[LlamaCppBackend, ModelIdentity]:
    """What `make run` uses."""
    with initialize_config_dir(str(ROOT / "conf"), version_base=None):
        composed = compose("config", ["backend=llama_cpp", "model=gemma3_270m_q4km"])
    backend, model = (
        OmegaConf.to_container(composed[name], resolve=True) for name in ("backend", "model")
    )
    return LlamaCppBackend.model_validate(backend), ModelIdentity.model_validate(model)


def measure(backend: LlamaCpp, url: str) -> dict[str, list[float]]:
    """Seconds of each way, in turn."""
    vocabulary = {**BARE, "temperature": 1.0, "n_probs": backend.describe()["n_vocab"]}
    prompt = {"prompt": backend.decide(REQUEST).request["sent"]["body"]["prompt"]}
    times: dict[str, list[float]] = {"decide": [], "bare": [], "vocabulary": []}
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        ways: dict[str, Callable[[], Any]] = {
            "decide": lambda: backend.decide(REQUEST),
            "bare": lambda: completion(client, prompt | BARE),
            "vocabulary": lambda: completion(client, prompt | vocabulary),
        }
        orders = list(permutations(ways))
        for repetition in range(WARM_UP + REPETITIONS):
            # No way always profits from, or suffers under, what ran before it.
            for way in orders[repetition % len(orders)]:
                seconds = timed(ways[way])
                if repetition >= WARM_UP:
                    times[way].append(seconds)
    return times


def completion(client: httpx.Client, body: dict[str, Any]) -> Any:
    """One completion, parsed, since a reader has to do that too."""
    return client.post("/completion", json=body).raise_for_status().json()


def timed(ask: Callable[[], Any]) -> float:
    """Seconds of wall clock."""
    start = time.perf_counter()
    ask()
    return time.perf_counter() - start


def report(times: dict[str, list[float]]) -> int:
    """Print medians and ratios; 1 when a goal is missed."""
    medians = {way: statistics.median(seconds) for way, seconds in times.items()}
    over_bare = medians["decide"] / medians["bare"]
    saving = medians["vocabulary"] / medians["decide"]
    table = Table("way", "median", "compared", "goal")
    table.add_row("bare", f"{medians['bare']:.4f} s", "", "")
    table.add_row(
        "decide", f"{medians['decide']:.4f} s", f"{over_bare:.3f} x bare", f"≤ {MOST_OVER_BARE}"
    )
    table.add_row(
        "vocabulary",
        f"{medians['vocabulary']:.4f} s",
        f"{saving:.1f} x decide",
        f"≥ {LEAST_SAVING:g}",
    )
    console = Console()
    console.print(table)
    console.print(f"{REPETITIONS} repetitions each, in turn, after {WARM_UP} to warm up")
    quick, spared = over_bare <= MOST_OVER_BARE, saving >= LEAST_SAVING
    figure(
        "a decision, to a bare completion",
        f"× {over_bare:.3f}",
        f"at most {MOST_OVER_BARE}",
        met=quick,
    )
    figure(
        "the whole vocabulary, to a decision",
        f"× {saving:.1f}",
        f"at least {LEAST_SAVING:g}",
        met=spared,
    )
    return 0 if quick and spared else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        sys.exit(f"error: {error}")
