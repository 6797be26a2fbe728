"""`jevexp gate`: its exit statuses, its lines and what it refuses."""

import json
from pathlib import Path

import pytest

from jevexp.cli.verbs.gate import main
from jevexp.errors import InputError
from tests.analysis.made import counts
from tests.support.cli import jevexp
from tests.support.runs import make_run, noul_tasks

TASKS = noul_tasks(200)
IDS = [task.id for task in TASKS]
QUICK = ("--draws", "200")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gate")
    for name, wrong in (("good", 10), ("same", 10), ("close", 13), ("bad", 90)):
        make_run(path / name, TASKS, wrong_ids=IDS[:wrong], counts=counts(200))
    return path


@pytest.mark.parametrize(
    ("candidate", "status", "word"),
    [("same", 0, "pass"), ("bad", 1, "fail"), ("close", 3, "inconclusive")],
)
def test_the_exit_status_says_what_the_last_line_says(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    candidate: str,
    status: int,
    word: str,
) -> None:
    arguments = [str(folder / candidate), "--baseline", str(folder / "good"), *QUICK]

    # The tasks are not here, so accuracy is judged from the records alone.
    assert main([*arguments, "--max-drop", "accuracy=0.025"]) == status
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == f"gate: {word}"
    (line,) = [line for line in said if "max-drop accuracy=0.025" in line]
    assert line.startswith(word)


def test_json_has_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(
        [
            str(folder / "close"), "--baseline", str(folder / "good"), *QUICK, "--json",
            "--max-drop", "accuracy=0.025",
        ]
    )  # fmt: skip
    found = json.loads(capsys.readouterr().out)

    assert found["exit_status"] == status == 3
    assert found["outcome"] == "inconclusive"
    assert found["rulings"][-1]["tasks_needed"] > 200


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (["--max-drop", "acuracy=0.02"], "no such metric: 'acuracy'; did you mean accuracy"),
        (["--max-drop", "brier=0.02"], "no such metric: 'brier'; did you mean brier_mean"),
        (["--max-drop", "mae=0.02"], "no such metric: 'mae'; did you mean ordinal_mae"),
        (["--max-drop", "ece=0.02"], "no such metric: 'ece'"),
        (["--max-drop", "accuracy=much"], "expected a number from 0"),
        (["--max-drop", "accuracy"], "found ''"),
        (["--max-drop", "accuracy=-1"], "found '-1'"),
        (["--max-drop", "brier_mean=0.1", "--max-drop", "brier_mean=0.2"], "given twice"),
        ([], "no rule"),
    ],
)
def test_a_bad_rule_is_unusable_input(folder: Path, rules: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        main([str(folder / "same"), "--baseline", str(folder / "good"), *rules])


def test_a_gate_judges_one_run_against_a_baseline(folder: Path) -> None:
    rule = ["--max-drop", "accuracy=0.02"]

    with pytest.raises(InputError, match="--baseline: missing"):
        main([str(folder / "same"), *rule])
    with pytest.raises(InputError, match="one run against its baseline; found 3"):
        main([str(folder), "--baseline", str(folder / "good"), *rule])


def test_unusable_input_is_one_line_and_status_two(folder: Path) -> None:
    done = jevexp(
        "gate", str(folder / "same"), "--baseline", str(folder / "none"), "--max-drop",
        "accuracy=0.02", cwd=folder,
    )  # fmt: skip

    assert done.status == 2
    assert len(done.err.splitlines()) == 1
