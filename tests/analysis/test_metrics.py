"""One entry of the registry is all that a metric takes."""

import json
from pathlib import Path

import pytest

from jevexp.analysis.compare import compare
from jevexp.analysis.comparison import Comparison
from jevexp.analysis.estimates import Options
from jevexp.analysis.gate import Limits, judge
from jevexp.analysis.metrics import METRICS, Metric, with_verdicts
from jevexp.analysis.report.page import ReportPaths, write_report
from jevexp.analysis.runs import FinishedRun
from jevexp.cli.main import main
from jevexp.cli.tracking import comparison_note
from jevexp.cli.verbs.gate import main as gate
from jevexp.core.json import dumps
from jevexp.harness.summary import Scored, summarize
from tests.analysis.made import finished, read_csv
from tests.support.runs import noul_tasks

TASKS = noul_tasks(60)
IDS = [task.id for task in TASKS]


def _missing_share(scored: Scored) -> float:
    return 1 - scored.probs[scored.gold]


NEW = Metric(
    name="missing_mean",
    title="Missing probability",
    heading="missing",
    unit="share that the right option lacks",
    higher_is_better=False,
    of_task=_missing_share,
)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[FinishedRun]:
    """A good run and one that is wrong in 15 of 60 tasks; the registry has one metric more."""
    monkeypatch.setitem(METRICS, NEW.name, NEW)
    return [finished(tmp_path / "good", TASKS), finished(tmp_path / "bad", TASKS, IDS[:15])]


@pytest.fixture
def comparison(runs: list[FinishedRun]) -> Comparison:
    return compare(runs, Options(draws=200))


def test_it_is_estimated_compared_and_judged(comparison: Comparison) -> None:
    good, bad = (run.estimates[NEW.name] for run in comparison.runs)
    difference = comparison.pairs[0].difference(NEW)

    assert good is not None
    assert bad is not None
    assert (good.value, bad.value) == pytest.approx((0.1, (45 * 0.1 + 15 * 0.75) / 60))
    assert difference is not None
    assert difference.delta == pytest.approx(0.1625)
    assert difference.verdict == "worse"
    # Accuracy, the Brier score and the new one.
    assert comparison.tests == 3


def test_json_tables_and_plots_have_it(
    comparison: Comparison, runs: list[FinishedRun], tmp_path: Path
) -> None:
    main(["compare", str(tmp_path / "good"), str(tmp_path / "bad"), "--csv", str(tmp_path / "csv")])
    write_report(comparison, runs, ReportPaths(tmp_path / "page.html"))
    document = json.loads(dumps(comparison.plain()))

    assert document["runs"][0][NEW.name]["value"] == pytest.approx(0.1)
    assert document["pairs"][0]["metrics"][-1]["name"] == NEW.name
    rows = read_csv(tmp_path / "csv/runs.csv")
    assert {"missing_mean", "missing_mean_low", "missing_mean_clusters"} <= rows[0].keys()
    # On the command line the tasks are not here.
    assert rows[0][NEW.name] == ""
    for name in ("leaderboard", "differences"):
        rows = read_csv(tmp_path / f"page-plots/{name}.csv")
        assert NEW.name in {row["metric"] for row in rows}
    page = (tmp_path / "page.html").read_text()
    assert ">Missing</th>" in page
    assert 'data-at="/runs/1/missing_mean/value"' in page
    assert "Missing probability<small>lower is better</small>" in page


def test_the_terminal_and_mlflow_show_it(
    comparison: Comparison, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["compare", str(tmp_path / "good"), str(tmp_path / "bad")])

    heading = next(line for line in capsys.readouterr().out.splitlines() if "accuracy" in line)
    assert heading.split()[:6] == ["run", "valid", "accuracy", "Brier", "ECE", "MAE"]
    assert "missing" in heading
    note = comparison_note(comparison, "runs", lambda _: None)
    assert "| accuracy | Brier | ECE | MAE | missing |" in note
    assert "**worse**: +0.163" in note


def test_a_gate_limits_it(
    comparison: Comparison, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ruling = judge(comparison, comparison, Limits({NEW.name: 0.05})).rulings[-1]
    # On the command line the tasks are not here.
    status = gate([str(tmp_path / "bad"), "--baseline", str(tmp_path / "good"),
                   "--max-drop", f"{NEW.name}=0.05"])  # fmt: skip

    assert ruling.outcome == "fail"
    assert ruling.found == pytest.approx(0.1625)
    assert status == 3
    assert f"max-drop {NEW.name}=0.05: {NEW.name} is not known" in capsys.readouterr().out


def test_without_a_test_a_metric_says_why() -> None:
    untested = [metric for metric in METRICS.values() if metric not in with_verdicts()]

    assert [metric.name for metric in untested] == ["ece"]
    assert all(metric.untested for metric in untested)


def test_the_names_are_the_summarys() -> None:
    assert set(METRICS) <= summarize([], []).plain().keys()
