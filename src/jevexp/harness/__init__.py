"""Asks each task once by the benchmark's protocol, scores the answers, sums them up."""

from jevexp.harness.harness import Harness, make_harness
from jevexp.harness.runner import Runner, RunOutcome
from jevexp.harness.scoring import Score, score
from jevexp.harness.steps import RunContext, Tariff
from jevexp.harness.stops import ExpectedModel, StopReason
from jevexp.harness.summary import summarize

__all__ = [
    "ExpectedModel",
    "Harness",
    "RunContext",
    "RunOutcome",
    "Runner",
    "Score",
    "StopReason",
    "Tariff",
    "make_harness",
    "score",
    "summarize",
]
