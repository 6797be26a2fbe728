"""Runs that a command line names as MLflow knows them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jevexp.cli.verbs.compare import main
from jevexp.cli.verbs.report import main as report
from jevexp.errors import InputError
from jevexp.tracking.mlflow import MlflowTracker
from tests.support.runs import make_run, noul_tasks, tracking

TASKS = noul_tasks(6)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tracked") / "outputs"


@pytest.fixture(scope="module")
def ids(outputs: Path) -> list[str]:
    """The run ids of a sweep of three runs, oldest first, the last of which is only in MLflow."""
    tracker = MlflowTracker(tracking(), outputs)
    found = []
    for number in range(3):
        path = outputs / "sweep" / f"{number}-run"
        started = f"2026-03-01T1{number}:00:00.000Z"
        wrong = {f"t{n}" for n in range(number)}
        made = make_run(path, TASKS, wrong_ids=wrong, started=started, sweep="it's a sweep")
        found.append(tracker.log(made, TASKS).run_id)
    shutil.rmtree(outputs / "sweep" / "2-run")
    return found


def compared(
    capsys: pytest.CaptureFixture[str], outputs: Path, *arguments: str
) -> list[dict[str, Any]]:
    assert main([*arguments, "--outputs", str(outputs), "--json"]) == 0
    runs: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["runs"]
    return runs


def test_runs_by_id_and_by_path(
    capsys: pytest.CaptureFixture[str], outputs: Path, ids: list[str]
) -> None:
    path = outputs / "sweep" / "0-run"

    runs = compared(capsys, outputs, f"mlflow:{ids[2]}", str(path), ids[1])

    # A run that is here is read here, another one is called by its id.
    here = outputs / "sweep" / "1-run"
    assert [run["path"] for run in runs] == [f"mlflow:{ids[2]}", str(path), str(here)]
    assert [run["correct"] for run in runs] == [4, 6, 5]
    assert [run["run"] for run in runs] == ["2-run", "0-run", "1-run"]


def test_runs_by_what_mlflow_finds_with_a_baseline_by_id(
    capsys: pytest.CaptureFixture[str], outputs: Path, ids: list[str]
) -> None:
    where = 'tags.jev.sweep = "it\'s a sweep"'

    runs = compared(capsys, outputs, "--where", where)
    assert [run["correct"] for run in runs] == [6, 5, 4]

    runs = compared(capsys, outputs, "--where", where, "--baseline", ids[2])
    assert [run["correct"] for run in runs] == [4, 6, 5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--where", "tags.jev.sweep = 'no'"], "no run of experiment 'jevexp' matches tags.jev"),
        (["--where", "nonsense"], "^--where: .*Invalid clause"),
        (["0" * 32], "Run with id=0+ not found"),
        (["--where", "x = 'y'", "--experiment", "other"], "there is no experiment 'other'"),
        (["0" * 32, "--uri", "http://127.0.0.1:1"], "cannot be reached"),
        (["0" * 32, "--uri", "https://h", "--token-env", "JEV_UNSET"], "JEV_UNSET is not set"),
        (["1" * 31], "no such folder"),
    ],
)
def test_what_is_not_found_is_said_in_one_line(
    arguments: list[str], message: str, outputs: Path, ids: list[str]
) -> None:
    with pytest.raises(InputError, match=message) as refused:
        main([*arguments, "--outputs", str(outputs)])
    assert "\n" not in str(refused.value)


def test_a_report_of_a_run_that_is_only_in_mlflow(
    outputs: Path, ids: list[str], workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=f"^mlflow:{ids[2]}: its directory is not here; give --o"):
        report([ids[2], "--outputs", str(outputs)])

    assert report([ids[2], "--outputs", str(outputs), "--output", "page.html"]) == 0
    assert capsys.readouterr().out == "page: page.html\n"
    assert f"mlflow:{ids[2]}" in (workplace / "page.html").read_text()


def test_a_folder_that_is_called_like_an_id_is_a_folder(
    capsys: pytest.CaptureFixture[str], outputs: Path, ids: list[str], workplace: Path
) -> None:
    make_run(workplace / ids[0], TASKS)

    runs = compared(capsys, outputs, ids[0], ids[1])

    assert runs[0]["run"] == ids[0]


def test_a_run_that_is_named_twice_is_refused(outputs: Path, ids: list[str]) -> None:
    with pytest.raises(InputError, match="given twice"):
        main([ids[0], str(outputs / "sweep" / "0-run"), "--outputs", str(outputs)])
    with pytest.raises(InputError, match=rf"^mlflow:{ids[2]}: given twice"):
        main([ids[2], ids[2], "--outputs", str(outputs)])
