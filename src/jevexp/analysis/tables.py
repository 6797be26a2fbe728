"""A comparison as tidy tables: one CSV file for each kind of row."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from jevexp.analysis.comparison import Comparison, Estimate
from jevexp.analysis.metric import Metric
from jevexp.analysis.plots.files import write_table
from jevexp.analysis.plots.flips import COLUMNS as FLIP_COLUMNS
from jevexp.analysis.plots.flips import FLIPS, flip_rows
from jevexp.analysis.plots.plot import Cell
from jevexp.analysis.statistics.interval import Interval
from jevexp.errors import InputError
from jevexp.untrusted.writing import Folder


class Table(NamedTuple):
    """A file's name, its columns, and how its rows are found."""

    name: str
    columns: Sequence[str]
    rows: Callable[[Comparison], Iterable[Sequence[Cell]]]


_ESTIMATES = ("accuracy", "brier", "ece", "mae")
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


def write_tables(comparison: Comparison, folder: Path) -> None:
    """Write every table into a folder that exists.

    Text that a spreadsheet would take for a formula begins with an apostrophe.

    Raises:
        InputError: a file cannot be written.
    """
    try:
        with Folder.open(folder) as there:
            for table in TABLES:
                write_table(there, table.name, table.columns, table.rows(comparison))
    except OSError as error:
        raise InputError(f"{error.filename or folder}: {error.strerror}") from error


def _runs(comparison: Comparison) -> Iterator[Sequence[Cell]]:
    for run in comparison.runs:
        fields: list[Cell] = [
            ", ".join(value) if isinstance(value := getattr(run, name), list) else value
            for name in _RUN
        ]
        for name in _ESTIMATES:
            fields += _estimate(getattr(run, name))
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
        for metric in pair.metrics:
            yield [labels[pair.baseline], labels[pair.candidate], *_metric(metric), *common]


def _matrix(comparison: Comparison) -> Iterator[Sequence[Cell]]:
    labels = [run.label for run in comparison.runs]
    for cell in comparison.matrix:
        if cell.accuracy is not None:
            yield [labels[cell.first], labels[cell.second], *_metric(cell.accuracy)]


def _families(comparison: Comparison) -> Iterator[Sequence[Cell]]:
    for run in comparison.runs:
        for family in run.families:
            yield [run.label, family.name, family.correct, *_estimate(family.accuracy)]


def _bins(comparison: Comparison) -> Iterator[Sequence[Cell]]:
    for run in comparison.runs:
        for one in run.bins:
            yield [
                run.label,
                one.lo,
                one.hi,
                one.n,
                one.mean_confidence,
                one.accuracy,
                *_ends(one.interval),
            ]


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


def _metric(metric: Metric) -> list[Cell]:
    return [
        metric.name,
        metric.delta,
        *_ends(metric.interval),
        *_ends(metric.equivalence),
        metric.n,
        metric.clusters,
        metric.p,
        metric.p_adjusted,
        metric.verdict and metric.verdict.value,
        metric.smallest_effect,
        metric.tasks_needed,
        metric.gained,
        metric.lost,
    ]


def _estimate(found: Estimate | None) -> list[Cell]:
    if found is None:
        return [None] * 5
    return [found.value, *_ends(found.interval), found.n, found.clusters]


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (interval.low, interval.high) if interval else (None, None)


def _estimate_columns(name: str) -> list[str]:
    return [name, *(f"{name}_{part}" for part in ("low", "high", "n", "clusters"))]


TABLES = (
    Table(
        "runs.csv",
        (*_RUN, *(column for name in _ESTIMATES for column in _estimate_columns(name)), *_RUN_END),
        _runs,
    ),
    Table("pairs.csv", ("baseline", "candidate", *_METRIC, *_PAIR), _pairs),
    Table("matrix.csv", ("first", "second", *_METRIC), _matrix),
    Table(
        "families.csv", ("label", "family", "correct", *_estimate_columns("accuracy")), _families
    ),
    Table(
        "bins.csv",
        ("label", "lo", "hi", "n", "mean_confidence", "accuracy", "low", "high"),
        _bins,
    ),
    Table(
        "identity.csv",
        ("label", "field", "verdict", "value", "declared", "observed", "differs"),
        _identity,
    ),
    Table(FLIPS, FLIP_COLUMNS, flip_rows),
)
