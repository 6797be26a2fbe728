"""All flips as a table; the page shows the first ones."""

from collections.abc import Iterator, Mapping, Sequence

from jevexp.analysis.comparison import Comparison
from jevexp.analysis.plots.plot import Cell
from jevexp.core.json import dumps

FLIPS = "flips.csv"
COLUMNS = ("baseline", "candidate", "task_id", "right", "distance", "baseline_probs",
           "candidate_probs")  # fmt: skip


def flip_rows(comparison: Comparison) -> Iterator[Sequence[Cell]]:
    """A row a flip of every pair, distributions as JSON, in the order of the comparison."""
    labels = [run.label for run in comparison.runs]
    for pair in comparison.pairs:
        names = (labels[pair.baseline], labels[pair.candidate])
        for flip in pair.flips:
            probs = (_json(flip.baseline), _json(flip.candidate))
            yield (*names, flip.task_id, flip.right, flip.distance, *probs)


def _json(probs: Mapping[str, float] | None) -> str | None:
    return None if probs is None else dumps(probs)
