"""A comparison as tidy tables: one CSV file for each kind of row."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from jevexp.analysis.comparison import Comparison
from jevexp.analysis.estimates import Difference, Estimate
from jevexp.analysis.metrics import ACCURACY, METRICS
from jevexp.analysis.statistics.intervals import Interval
from jevexp.core.json import dumps
from jevexp.errors import InputError
from jevexp.untrusted.writing import Folder

Cell = str | int | float | None

# What a spreadsheet takes for a formula.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


class Table(NamedTuple):
    """A file's name, its columns, and how its rows are found."""

    name: str
    columns: Sequence[str]
    rows: Callable[[Comparison], Iterable[Sequence[Cell]]]


_METRIC = ("metric", "delta", "low", "high", "equivalence_low", "equivalence_high", "n", "clusters",
           "p", "p_adjusted", "verdict", "smallest_effect", "tasks_needed", "gained",
           "lost")  # fmt: skip
_PAIR = ("paired", "coverage", "distance_mean", "distance_max", "latency_ratio",
         "latency_low", "latency_high", "latency_n", "latency_warnings", "remarks")  # fmt: skip
_RUN = ("label", "run", "path", "model", "alias", "backend", "quantization", "ftype",
        "weights_bytes", "status", "started", "harness", "readouts", "concurrency", "requested",
        "attempted", "answered", "valid", "scored", "correct", "coverage")  # fmt: skip
_RUN_END = ("latency_n", "latency_median_s", "latency_low_s", "latency_high_s", "latency_p95_s",
            "latency_mean_s", "paraphrase_pairs", "paraphrases_both_valid", "paraphrases_agree",
            "agreement", "agreement_low", "agreement_high", "cost_usd",
            "price_per_1000_decisions_usd", "cost_basis", "fingerprint", "identity")  # fmt: skip
_BINS = ("label", "lo", "hi", "n", "mean_confidence", "accuracy", "low", "high")
_IDENTITY = ("label", "field", "verdict", "value", "declared", "observed", "differs")
_FLIP = ("baseline", "candidate", "task_id", "right", "distance", "baseline_probs",
         "candidate_probs")  # fmt: skip
_MISTAKE = ("task_id", "predicted", "confidence", "probs")


def write_tables(comparison: Comparison, folder: Path) -> None:
    """Write every table into a folder that exists.

    Text that a spreadsheet would take for a formula begins with an apostrophe.

    Raises:
        InputError: a file cannot be written.
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

    Raises:
        OSError: the file cannot be written.
    """
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    folder.replace(name, file.getvalue().encode())


def _cell(value: Cell) -> Cell:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULAS) else value


def _runs(comparison: Comparison) -> Iterator[Sequence[Cell]]:
    for run in comparison.runs:
        fields: list[Cell] = [
            ", ".join(value) if isinstance(value := getattr(run, name), list) else value
            for name in _RUN
        ]
        for name in METRICS:
            fields += _estimate(run.estimates[name])
        latency, pairs = run.latency, run.paraphrases
        agreement = pairs.agreement if pairs else None
        yield [
            *fields,
            latency.n if latency else None,
            latency.median.value if latency else None,
            *_ends(latency.median.interval if latency else None),
            latency.p95 if latency else None,
            latency.mean if latency else None,
            *((pairs.pairs, pairs.both_valid, pairs.agree) if pairs else (None, None, None)),
            agreement.value if agreement else None,
            *_ends(agreement.interval if agreement else None),
            run.cost_usd,
            run.price_per_1000_decisions_usd,
            ", ".join(run.cost_basis),
            run.fingerprint,
            run.identity,
        ]


def _pairs(comparison: Comparison) -> Iterator[Sequence[Cell]]:
    labels = [run.label for run in comparison.runs]
    for pair in comparison.pairs:
        latency = pair.latency
        common: list[Cell] = [
            pair.paired,
            pair.coverage,
            pair.distance_mean,
            pair.distance_max,
            latency.ratio if latency else None,
            *_ends(latency.interval if latency else None),
            latency.n if latency else None,
            "; ".join(latency.warnings) if latency else None,
            "; ".join(pair.remarks),
        ]
        for difference in pair.metrics:
            names = [labels[pair.baseline], labels[pair.candidate]]
            yield [*names, *_difference(difference), *common]


def _matrix(comparison: Comparison) -> Iterator[Sequence[Cell]]:
    labels = [run.label for run in comparison.runs]
    for cell in comparison.matrix:
        if cell.accuracy is not None:
            yield [labels[cell.first], labels[cell.second], *_difference(cell.accuracy)]


def _families(comparison: Comparison) -> Iterator[Sequence[Cell]]:
    for run in comparison.runs:
        for family in run.families:
            yield [run.label, family.name, family.correct, *_estimate(family.accuracy)]


def _bins(comparison: Comparison) -> Iterator[Sequence[Cell]]:
    for run in comparison.runs:
        for bin_ in run.bins:
            means = (bin_.mean_confidence, bin_.accuracy)
            yield [run.label, bin_.lo, bin_.hi, bin_.n, *means, *_ends(bin_.interval)]


def _identity(comparison: Comparison) -> Iterator[Sequence[Cell]]:
    for run in comparison.runs:
        for field in run.identity_fields:
            yield [
                run.label,
                field.name,
                field.verdict,
                field.value,
                field.declared,
                field.observed,
                "yes" if field.differs else "no",
            ]


def _flips(comparison: Comparison) -> Iterator[Sequence[Cell]]:
    """A row a flip of every pair, distributions as JSON, in the order of the comparison."""
    labels = [run.label for run in comparison.runs]
    for pair in comparison.pairs:
        names = (labels[pair.baseline], labels[pair.candidate])
        for flip in pair.flips:
            probs = (_json(flip.baseline), _json(flip.candidate))
            yield (*names, flip.task_id, flip.right, flip.distance, *probs)


def _mistakes(comparison: Comparison) -> Iterator[Sequence[Cell]]:
    """A row a mistake, the distribution as JSON, the surest first."""
    for mistake in comparison.mistakes:
        yield (mistake.task_id, mistake.predicted, mistake.confidence, dumps(mistake.probs))


def _difference(difference: Difference) -> list[Cell]:
    fields = ("n", "clusters", "p", "p_adjusted", "verdict", "smallest_effect", "tasks_needed",
              "gained", "lost")  # fmt: skip
    ends = (*_ends(difference.interval), *_ends(difference.equivalence))
    values = (getattr(difference, field) for field in fields)
    return [difference.name, difference.delta, *ends, *values]


def _json(probs: Mapping[str, float] | None) -> str | None:
    return None if probs is None else dumps(probs)


def _estimate(estimate: Estimate | None) -> list[Cell]:
    if estimate is None:
        return [None] * 5
    return [estimate.value, *_ends(estimate.interval), estimate.n, estimate.clusters]


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (interval.low, interval.high) if interval else (None, None)


def _columns_of_runs() -> Sequence[str]:
    estimates = (column for metric in METRICS.values() for column in metric.columns)
    return (*_RUN, *estimates, *_RUN_END)


def tables() -> list[Table]:
    """The tables of a comparison."""
    return [
        Table("runs.csv", _columns_of_runs(), _runs),
        Table("pairs.csv", ("baseline", "candidate", *_METRIC, *_PAIR), _pairs),
        Table("matrix.csv", ("first", "second", *_METRIC), _matrix),
        Table("families.csv", ("label", "family", "correct", *ACCURACY.columns), _families),
        Table("bins.csv", _BINS, _bins),
        Table("identity.csv", _IDENTITY, _identity),
        FLIP_TABLE,
    ]


# All flips or mistakes; a page shows the first ones.
FLIP_TABLE = Table("flips.csv", _FLIP, _flips)
MISTAKE_TABLE = Table("mistakes.csv", _MISTAKE, _mistakes)
