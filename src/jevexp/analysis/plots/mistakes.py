"""All wrong answers of one run as a table; the page shows the first ones."""

from collections.abc import Iterator, Sequence

from jevexp.analysis.comparison import Comparison
from jevexp.analysis.plots.plot import Cell
from jevexp.core.json import dumps

MISTAKES = "mistakes.csv"
COLUMNS = ("task_id", "predicted", "confidence", "probs")


def mistake_rows(comparison: Comparison) -> Iterator[Sequence[Cell]]:
    """A row a mistake, the distribution as JSON, the surest first."""
    for mistake in comparison.mistakes:
        yield (mistake.task_id, mistake.predicted, mistake.confidence, dumps(mistake.probs))
