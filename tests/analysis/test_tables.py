"""The tables of a comparison: the numbers of the JSON, and text that stays text."""

from pathlib import Path
from typing import Any

import pytest

from jevexp.analysis.compare import compare
from jevexp.analysis.comparison import Comparison
from jevexp.analysis.estimates import Options
from jevexp.analysis.tables import tables as tables_of_comparison
from jevexp.analysis.tables import write_tables
from tests.analysis.made import finished, read_csv
from tests.support.runs import manifest, noul_tasks

FORMULA = "=HYPERLINK(1)"


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    """Three runs; a task and a model have names that a spreadsheet would compute."""
    tasks = noul_tasks(30)
    tasks[2] = tasks[2].model_copy(update={"id": FORMULA})
    ids = [task.id for task in tasks]
    model: dict[str, Any] = manifest(tmp_path).model.model_dump() | {"requested": "@SUM(1)"}
    return compare(
        [
            finished(tmp_path / "a", tasks, ids[:2]),
            finished(tmp_path / "b", tasks, ids[2:9], model=model),
            finished(tmp_path / "c", tasks, ids[:12]),
        ],
        Options(draws=200),
    )


@pytest.fixture
def tables(comparison: Comparison, tmp_path: Path) -> dict[str, list[dict[str, str]]]:
    (tmp_path / "csv").mkdir()
    write_tables(comparison, tmp_path / "csv")
    return {table.name: read_csv(tmp_path / "csv" / table.name) for table in tables_of_comparison()}


def test_every_number_is_the_comparisons(
    comparison: Comparison, tables: dict[str, list[dict[str, str]]]
) -> None:
    for row, run in zip(tables["runs.csv"], comparison.runs, strict=True):
        assert run.accuracy is not None
        assert run.accuracy.interval is not None
        assert float(row["accuracy"]) == run.accuracy.value
        assert float(row["accuracy_low"]) == run.accuracy.interval.low
        assert row["ordinal_mae"] == ""
    metrics = [metric for pair in comparison.pairs for metric in pair.metrics]
    for row, metric in zip(tables["pairs.csv"], metrics, strict=True):
        assert row["metric"] == metric.name
        assert float(row["delta"]) == metric.delta
        assert row["verdict"] == (metric.verdict or "")
    cells = [cell.accuracy for cell in comparison.matrix if cell.accuracy]
    for row, cell in zip(tables["matrix.csv"], cells, strict=True):
        assert float(row["p_adjusted"]) == cell.p_adjusted
    assert len(tables["flips.csv"]) == sum(len(pair.flips) for pair in comparison.pairs)
    assert len(tables["families.csv"]) == 3 * 2
    assert len(tables["bins.csv"]) == 3 * 10


def test_text_from_elsewhere_is_never_a_formula(
    tables: dict[str, list[dict[str, str]]],
) -> None:
    assert f"'{FORMULA}" in {row["task_id"] for row in tables["flips.csv"]}
    assert tables["runs.csv"][1]["alias"] == "'@SUM(1)"
    text = ("label", "run", "path", "model", "alias", "task_id", "baseline", "candidate", "field")
    for rows in tables.values():
        for row in rows:
            assert not [row[name] for name in text if row.get(name, "").startswith(tuple("=+-@"))]


def test_every_column_is_described() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/comparison.md").read_text()
    columns = {column for table in tables_of_comparison() for column in table.columns}
    # The four parts of an estimate are described once.
    parts = ("_low", "_high", "_n", "_clusters")
    missing = [
        column
        for column in sorted(columns)
        if f"`{column}`" not in page and not column.endswith(parts)
    ]
    assert missing == []
