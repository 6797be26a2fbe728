"""Pairs of models whose difference is known, and what the verdict says about them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jevexp.analysis.compare import judged
from jevexp.analysis.estimates import (
    Difference,
    Options,
    Sums,
    mean_columns,
    mean_difference,
    share_difference,
)
from jevexp.analysis.intervals import Resampling
from jevexp.analysis.verdicts import Verdict, holm

BRIER_NOISE = 0.2
TOLD_APART = frozenset({Verdict.BETTER, Verdict.WORSE})


@dataclass(frozen=True, slots=True)
class Setting:
    """A truth: the candidate gains `effect` in accuracy, and a share `discordance` of tasks flips.

    Tasks come in clusters of `size`; each shares its cluster's outcome with the probability
    `likeness`, and else has one of its own.
    """

    tasks: int
    size: int = 1
    likeness: float = 0.9
    discordance: float = 0.2
    effect: float = 0.0

    @property
    def design_effect(self) -> float:
        """The variance over that of independent tasks: two tasks are alike by likeness squared."""
        return 1 + (self.size - 1) * self.likeness**2


@dataclass(frozen=True, slots=True)
class Drawn:
    """Differences of one simulated pair, candidate minus baseline: a value a task."""

    correct: NDArray[np.float64]
    brier: NDArray[np.float64]


class Simulation:
    """Simulated pairs of one setting, all held against the same bootstrap samples."""

    def __init__(self, setting: Setting, *, seed: int, draws: int = 1000) -> None:
        self._setting = setting
        self._generator = np.random.default_rng(seed)
        self.options = Options(draws=draws)
        self._clusters = self._members = np.arange(setting.tasks) // setting.size
        self._resampling = Resampling(self._members, draws=draws, seed=seed + 1)

    def forget_clusters(self) -> None:
        """Analyse every task as if it were independent of all others."""
        self._members = np.arange(self._setting.tasks)
        self._resampling = Resampling(self._members, draws=self.options.draws, seed=1)

    def pairs(self, count: int) -> Iterator[dict[str, Difference]]:
        """Accuracy and Brier of each pair, with p values as of one test alone."""
        for _ in range(count):
            drawn = self._draw()
            yield self._metrics(drawn)

    def verdicts(self, count: int) -> dict[str, Counter[Verdict]]:
        """How often each metric alone gets each verdict; "any" counts the first after Holm."""
        found = {name: Counter[Verdict]() for name in ("accuracy", "brier_mean", "any")}
        for metrics in self.pairs(count):
            p_values = [metric.p for metric in metrics.values() if metric.p is not None]
            together = []
            for metric, adjusted in zip(metrics.values(), holm(p_values), strict=True):
                assert metric.p is not None
                alone = judged(metric, metric.p, self.options).verdict
                assert alone is not None
                found[metric.name][alone] += 1
                together.append(judged(metric, adjusted, self.options).verdict)
            told = [verdict for verdict in together if verdict in TOLD_APART]
            found["any"][told[0] if told else Verdict.INCONCLUSIVE] += 1
        return found

    def _metrics(self, drawn: Drawn) -> dict[str, Difference]:
        columns = [mean_columns(drawn.correct), mean_columns(drawn.brier)]
        first, second = self._resampling.sums(columns)
        accuracy = share_difference("accuracy", drawn.correct, self._sums(first))
        brier = mean_difference("brier_mean", drawn.brier, self._sums(second))
        assert accuracy is not None
        assert brier is not None
        return {"accuracy": accuracy, "brier_mean": brier}

    def _sums(self, drawn: NDArray[np.float64]) -> Sums:
        return Sums(drawn, self._members, self.options)

    def _draw(self) -> Drawn:
        setting, generator = self._setting, self._generator
        shared = generator.random(setting.tasks) < setting.likeness
        own = self._outcomes(setting.tasks)
        correct = np.where(shared, self._outcomes(self._clusters[-1] + 1)[self._clusters], own)
        # A flip moves the Brier score by about one, and every answer moves it a little.
        brier = generator.normal(-correct, BRIER_NOISE)
        return Drawn(correct, brier)

    def _outcomes(self, count: int) -> NDArray[np.float64]:
        setting = self._setting
        gained = (setting.discordance + setting.effect) / 2
        lost = (setting.discordance - setting.effect) / 2
        return self._generator.choice(
            [1.0, -1.0, 0.0], p=[gained, lost, 1 - gained - lost], size=count
        )


def share(counts: Counter[Verdict], *verdicts: Verdict) -> float:
    """The share of the pairs that got one of the verdicts."""
    return sum(counts[verdict] for verdict in verdicts) / counts.total()


def monte_carlo_error(value: float, count: int) -> float:
    """The standard error of a share that was found in so many simulations."""
    return float((value * (1 - value) / count) ** 0.5)
