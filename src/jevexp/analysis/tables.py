"""A comparison as tidy tables: one CSV file for each kind of row."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from jevexp.analysis.comparison import Comparison
from jevexp.analysis.metrics import ACCURACY, METRICS
from jevexp.core.json import dumps
from jevexp.errors import InputError
from jevexp.untrusted.writing import Folder

Cell = str | int | float | None
Rows = Iterator[Sequence[Cell]]

# What a spreadsheet takes for a formula.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


class Table(NamedTuple):
    """A file's name, its columns, and how its rows are found."""

    name: str
    columns: Sequence[str]
    rows: Callable[[Comparison], Iterable[Sequence[Cell]]]


# The fields of an estimate; see `cells`.
ESTIMATE = ("value", "low", "high", "n", "clusters")
_METRIC = ("delta", "low", "high", "equivalence_low", "equivalence_high", "n", "clusters",
           "p", "p_adjusted", "verdict", "smallest_effect", "tasks_needed", "gained",
           "lost")  # fmt: skip
_PAIR = ("paired", "coverage", "distance_mean", "distance_max")
_RUN = ("label", "run", "path", "model", "alias", "backend", "quantization", "ftype",
        "weights_bytes", "status", "started", "harness", "readouts", "concurrency", "requested",
        "attempted", "answered", "valid", "scored", "correct", "coverage")  # fmt: skip
_RUN_TIMES = ("latency_n", "latency_median_s", "latency_low_s", "latency_high_s", "latency_p95_s",
              "latency_mean_s", "paraphrase_pairs", "paraphrases_both_valid", "paraphrases_agree",
              "agreement", "agreement_low", "agreement_high")  # fmt: skip
_RUN_END = ("cost_usd", "price_per_1000_decisions_usd", "cost_basis", "fingerprint", "identity")
_BIN = ("lo", "hi", "n", "mean_confidence", "accuracy", "low", "high")
_IDENTITY = ("verdict", "value", "declared", "observed")


def write_tables(comparison: Comparison, folder: Path) -> None:
    """Write every table into a folder that exists.

    Text that a spreadsheet would take for a formula begins with an apostrophe.

    Raises InputError: a file cannot be written.
    """
    try:
        with Folder.open(folder) as there:
            for table in tables():
                write_table(there, table.name, table.columns, table.rows(comparison))
    except OSError as error:
        raise InputError(f"{error.filename or folder}: {error.strerror}") from error


def write_table(
    folder: Folder, name: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]
) -> None:
    """Write a CSV file: column names, then the rows; unknown is empty, numbers are unrounded.

    Raises OSError: the file cannot be written.
    """
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(
            f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULAS) else cell
            for cell in row
        )
    folder.replace(name, file.getvalue().encode())


def cells(record: object, columns: Sequence[str]) -> list[Cell]:
    """The fields of a record by their names, a list as one text; for no record all are unknown.

    `low` and `high` are the ends of its `interval`, `NAME_low` and `NAME_high` those of its `NAME`.
    """
    return [None if record is None else _cell(record, column) for column in columns]


def _cell(record: object, column: str) -> Cell:
    name, _, end = column.rpartition("_")
    if end in ("low", "high"):
        return getattr(getattr(record, name or "interval"), end, None)
    value = getattr(record, column)
    return ", ".join(value) if isinstance(value, list) else value


def tables() -> list[Table]:
    """The tables of a comparison."""
    estimates = [column for metric in METRICS.values() for column in metric.columns]
    latency = ("latency_ratio", "latency_low", "latency_high", "latency_n", "latency_warnings")
    return [
        Table("runs.csv", (*_RUN, *estimates, *_RUN_TIMES, *_RUN_END), _runs),
        Table(
            "pairs.csv",
            ("baseline", "candidate", "metric", *_METRIC, *_PAIR, *latency, "remarks"),
            _pairs,
        ),
        Table("matrix.csv", ("first", "second", "metric", *_METRIC), _matrix),
        Table("families.csv", ("label", "family", "correct", *ACCURACY.columns), _families),
        Table("bins.csv", ("label", *_BIN), _bins),
        Table("identity.csv", ("label", "field", *_IDENTITY, "differs"), _identity),
        FLIP_TABLE,
    ]


def _runs(comparison: Comparison) -> Rows:
    for run in comparison.runs:
        latency, pairs = run.latency, run.paraphrases
        yield [
            *cells(run, _RUN),
            *(cell for name in METRICS for cell in cells(run.estimates[name], ESTIMATE)),
            *cells(latency, ["n"]),
            *cells(latency and latency.median, ESTIMATE[:3]),
            *cells(latency, ["p95", "mean"]),
            *cells(pairs, ["pairs", "both_valid", "agree"]),
            *cells(pairs and pairs.agreement, ESTIMATE[:3]),
            *cells(run, _RUN_END),
        ]


def _pairs(comparison: Comparison) -> Rows:
    labels = [run.label for run in comparison.runs]
    for pair in comparison.pairs:
        names = (labels[pair.baseline], labels[pair.candidate])
        latency = pair.latency
        common = (
            *cells(pair, _PAIR),
            *cells(latency, ["ratio", "low", "high", "n"]),
            "; ".join(latency.warnings) if latency else None,
            "; ".join(pair.remarks),
        )
        for difference in pair.metrics:
            yield [*names, difference.name, *cells(difference, _METRIC), *common]


def _matrix(comparison: Comparison) -> Rows:
    labels = [run.label for run in comparison.runs]
    for cell in comparison.matrix:
        if (accuracy := cell.accuracy) is not None:
            names = (labels[cell.first], labels[cell.second])
            yield [*names, accuracy.name, *cells(accuracy, _METRIC)]


def _families(comparison: Comparison) -> Rows:
    for run in comparison.runs:
        for family in run.families:
            yield [run.label, family.name, family.correct, *cells(family.accuracy, ESTIMATE)]


def _bins(comparison: Comparison) -> Rows:
    for run in comparison.runs:
        for bin_ in run.bins:
            yield [run.label, *cells(bin_, _BIN)]


def _identity(comparison: Comparison) -> Rows:
    for run in comparison.runs:
        for field in run.identity_fields:
            differs = "yes" if field.differs else "no"
            yield [run.label, field.name, *cells(field, _IDENTITY), differs]


def _flips(comparison: Comparison) -> Rows:
    """A row a flip of every pair, distributions as JSON, in the order of the comparison."""
    labels = [run.label for run in comparison.runs]
    for pair in comparison.pairs:
        names = (labels[pair.baseline], labels[pair.candidate])
        for flip in pair.flips:
            sides = (flip.baseline, flip.candidate)
            probs = [None if side is None else dumps(side) for side in sides]
            yield (*names, flip.task_id, flip.right, flip.distance, *probs)


def _mistakes(comparison: Comparison) -> Rows:
    """A row a mistake, the distribution as JSON, the surest first."""
    for mistake in comparison.mistakes:
        yield (mistake.task_id, mistake.predicted, mistake.confidence, dumps(mistake.probs))


# All flips or mistakes; a page shows the first ones.
FLIP_TABLE = Table(
    "flips.csv",
    ("baseline", "candidate", "task_id", "right", "distance", "baseline_probs", "candidate_probs"),
    _flips,
)
MISTAKE_TABLE = Table("mistakes.csv", ("task_id", "predicted", "confidence", "probs"), _mistakes)
