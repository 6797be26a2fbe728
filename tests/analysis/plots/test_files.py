"""What plots leave on disk."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.axes import Axes

from jevexp.analysis.plots import NAMES, plots
from jevexp.analysis.plots.drawing import Margins, Panel, Plot
from jevexp.analysis.report.page import write_plot
from jevexp.analysis.tables import Cell, write_table
from jevexp.untrusted.writing import Folder
from tests.analysis.made import Compared, read_csv


def titled(title: str) -> Plot:
    def draw(axes: Axes) -> None:
        axes.plot([0, 1], [0, 1])
        axes.set_title(title)

    return Plot("one", "One", ("a",), [(1,)], [Panel("one", title, "a line", 200, draw, Margins())])


def test_the_same_plot_gives_the_same_bytes(two_runs: Compared, tmp_path: Path) -> None:
    found = plots(two_runs.comparison)
    assert tuple(found) == NAMES
    for folder in ("first", "again"):
        with Folder.named(tmp_path / folder) as there:
            for name in ("reliability", "tradeoff"):
                write_plot(found[name], there)

    files = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert files == ["reliability.csv", "reliability.png", "reliability.svg",
                     "tradeoff.csv", "tradeoff.png", "tradeoff.svg"]  # fmt: skip
    for name in files:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    svg = (tmp_path / "first" / "tradeoff.svg").read_text()
    assert "<dc:date>" not in svg
    assert ">beta</text>" in svg


def test_the_data_is_the_comparison_unrounded(five_runs: Compared, tmp_path: Path) -> None:
    comparison = five_runs.comparison
    for plot in plots(comparison).values():
        with Folder.open(tmp_path) as folder:
            write_table(folder, f"{plot.name}.csv", plot.columns, plot.rows)

    accuracies = {
        row["label"]: float(row["value"])
        for row in read_csv(tmp_path / "leaderboard.csv")
        if row["metric"] == "accuracy"
    }
    assert accuracies == {run.label: run.accuracy.value for run in comparison.runs if run.accuracy}
    deltas = [
        float(row["value"])
        for row in read_csv(tmp_path / "differences.csv")
        if row["metric"] == "brier_mean"
    ]
    assert deltas == [one.delta for pair in comparison.pairs for one in pair.metrics
                      if one.name == "brier_mean"]  # fmt: skip
    counts = [int(row["n"]) for row in read_csv(tmp_path / "reliability.csv")]
    assert counts == [one.n for run in comparison.runs for one in run.bins]
    seconds = [float(row["seconds"]) for row in read_csv(tmp_path / "latency.csv")]
    assert seconds == [q for run in comparison.runs if run.latency for q in run.latency.quantiles]
    cells = [float(row["delta"]) for row in read_csv(tmp_path / "pairwise.csv")]
    assert cells == [cell.accuracy.delta for cell in comparison.matrix if cell.accuracy]
    right = sum(int(row["correct"]) for row in read_csv(tmp_path / "families.csv"))
    assert right == sum(run.correct for run in comparison.runs)


def test_unknown_is_empty_and_a_formula_is_text(tmp_path: Path) -> None:
    rows: Sequence[Sequence[Cell]] = [("=1+1", None, -0.5), ("-x", True, 0.1 + 0.2)]

    with Folder.open(tmp_path) as folder:
        write_table(folder, "t.csv", ("a", "b", "c"), rows)

    assert (tmp_path / "t.csv").read_bytes() == (
        b"a,b,c\n'=1+1,,-0.5\n'-x,True,0.30000000000000004\n"
    )


@pytest.mark.parametrize("title", ["$x^{", "東京 \U0001f600", "a\x00\u202eb", "<script>&"])
def test_any_title_can_be_drawn(title: str, tmp_path: Path) -> None:
    plot = titled("plain")

    with Folder.open(tmp_path) as folder:
        write_plot(replace(plot, panels=[replace(plot.panels[0], title=title)]), folder)

    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
