"""`jevexp compare`: what it reads, prints and refuses."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jevexp.cli.main import main as jevexp_main
from jevexp.cli.verbs.compare import main
from jevexp.errors import InputError
from jevexp.store import RunStatus
from tests.analysis.made import counts
from tests.support.cli import jevexp
from tests.support.runs import make_run, noul_tasks

TASKS = noul_tasks(40)
IDS = [task.id for task in TASKS]
QUICK = ("--draws", "200")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of a bad and a good model over the demo tasks."""
    workplace = tmp_path_factory.mktemp("compare")
    sweep = ("-m", "dataset=demo", "tracking=none", "backend.mode=noise")
    assert jevexp(*sweep, "backend.accuracy=0.6,0.95", cwd=workplace).status == 0
    (found,) = workplace.glob("outputs/sweeps/20*/*")
    return found


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """Two runs whose tasks are not here."""
    make_run(tmp_path / "sweep" / "0-good", TASKS, counts=counts(40))
    make_run(tmp_path / "sweep" / "1-bad", TASKS, wrong_ids=IDS[:20], counts=counts(40))
    return tmp_path / "sweep"


def compared(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, *QUICK, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_better_model_is_called_better(demo: Path) -> None:
    done = jevexp("compare", str(demo), *QUICK, cwd=demo)

    assert done.status == 0
    assert done.err == ""
    accuracy = next(line for line in done.out.splitlines() if line.startswith("  accuracy"))
    assert accuracy.split()[-1] == "better"
    assert "both attempted 48 of 48 tasks, in 24 independent groups" in done.out
    assert "paraphrases answered alike: baseline" in done.out
    assert "MAE" in done.out


def test_the_table_has_the_numbers_of_the_json(
    sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pair,) = compared(capsys, str(sweep))["pairs"]
    assert main([str(sweep), *QUICK]) == 0
    said = capsys.readouterr().out

    for metric in pair["metrics"]:
        low, high = metric["interval"]
        assert f"{metric['delta']:+.3f}" in said
        assert f"{low:+.3f} to {high:+.3f}" in said
    assert "candidate is" in said
    assert "worse" in said


def test_the_leaderboard_and_the_matrix_have_the_numbers_of_the_json(
    sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(sweep / "2-middling", TASKS, wrong_ids=IDS[:8], counts=counts(40))
    found = compared(capsys, str(sweep))
    assert main([str(sweep), *QUICK]) == 0
    said = capsys.readouterr().out

    for run in found["runs"]:
        low, high = run["accuracy"]["interval"]
        assert f"{run['accuracy']['value']:.3f}" in said
        assert f"{low:.3f}–{high:.3f}" in said
    (last,) = [cell for cell in found["matrix"] if (cell["first"], cell["second"]) == (1, 2)]
    assert last["accuracy"]["verdict"] == "better"
    row = next(line for line in said.splitlines() if line.startswith("  2  gemma4_q4km #3"))
    assert row.split()[-1] == f"{last['accuracy']['delta']:+.3f}"
    assert f"{found['tests']} tests were adjusted together" in said
    sentences = [line for line in said.splitlines() if line.startswith("verdict")]
    assert "gemma4_q4km #2 is worse than gemma4_q4km #1 in accuracy: -0.500" in sentences[0]
    assert len(sentences) == 2


def test_many_pairs_are_told_in_a_sentence_each(
    sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(2, 9):
        make_run(sweep / f"{number}-more", TASKS, wrong_ids=IDS[:number], counts=counts(40))
    assert main([str(sweep), *QUICK]) == 0
    said = capsys.readouterr().out

    assert "8 pairs in detail: --json, --csv or --html" in said
    assert "right on one side alone" not in said
    assert len([line for line in said.splitlines() if line.startswith("verdict")]) == 8


def test_two_runs_have_no_matrix(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(sweep), *QUICK]) == 0

    assert "of the column" not in capsys.readouterr().out


def test_a_latency_that_cannot_be_trusted_says_why(
    sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(sweep), *QUICK]) == 0

    said = capsys.readouterr().out
    assert "do not trust it: the candidate ran at the same time as 0-good on one host" in said


def test_tables_are_written_beside_what_is_printed_and_never_over_others(
    sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = sweep.parent / "tables"
    found = compared(capsys, str(sweep), f"--csv={folder}")

    rows = (folder / "flips.csv").read_text().splitlines()
    assert len(rows) == 1 + len(found["pairs"][0]["flips"])
    with pytest.raises(InputError, match=r"runs\.csv: exists"):
        main([str(sweep), f"--csv={folder}"])
    assert main([str(sweep), *QUICK, f"--csv={folder}", "--force"]) == 0


def test_a_run_is_no_folder_for_tables(sweep: Path) -> None:
    with pytest.raises(InputError, match="is a run; put --csv last"):
        main(["--csv", str(sweep / "0-good"), str(sweep)])


def test_at_most_ten_flips_are_printed_and_all_are_in_the_json(
    sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pair,) = compared(capsys, str(sweep))["pairs"]
    assert main([str(sweep), *QUICK]) == 0
    said = capsys.readouterr().out

    assert len(pair["flips"]) == 20
    assert said.count("yes 0.90, no 0.10") == 10
    assert "and 10 more" in said


def test_the_baseline_is_the_first_run_or_the_one_named(
    sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = str(sweep / "1-bad")

    assert compared(capsys, str(sweep))["runs"][0]["run"] == "0-good"
    assert compared(capsys, str(sweep), "--baseline", bad)["runs"][0]["run"] == "1-bad"


def test_the_same_seed_gives_the_same_numbers(
    sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, again = (compared(capsys, str(sweep), "--seed", "3") for _ in range(2))

    assert first == again
    assert first != compared(capsys, str(sweep), "--seed", "4")


def test_a_refused_run_of_a_sweep_is_left_out_by_name(
    sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(sweep / "2-refused", TASKS, attempted=0, status=RunStatus.REFUSED)

    assert main([str(sweep), *QUICK]) == 0

    assert "left out: " in capsys.readouterr().err


def test_a_baseline_is_one_run(sweep: Path) -> None:
    with pytest.raises(InputError, match="a baseline is one run, found 2"):
        main([str(sweep), "--baseline", str(sweep)])


def test_one_run_is_unusable_input(sweep: Path) -> None:
    done = jevexp("compare", str(sweep / "0-good"), cwd=sweep)

    assert done.status == 2
    assert done.err.startswith("error: one run is no comparison")
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    "command",
    [
        ("compare", "COPY", "--html", "page.html"),
        ("compare", "COPY", "--json"),
        ("gate", "COPY", "--max-drop", "accuracy=0.02"),
    ],
    ids=lambda command: " ".join(command[::2]),
)
def test_a_copy_of_a_run_beside_it_is_unusable_input(
    sweep: Path,
    command: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(sweep)
    shutil.copytree("0-good", "COPY")

    assert jevexp_main([*command, "--baseline", "0-good"]) == 2

    done = capsys.readouterr()
    assert done.out == ""
    assert done.err == (
        "error: COPY: a copy of 0-good: both are the run '0-good' that started at "
        "2026-03-01T10:00:00.000Z; a run cannot be compared with itself\n"
    )
    assert not Path("page.html").exists()


@pytest.mark.parametrize(
    "option",
    [
        ("--alpha", "0.5"),
        ("--alpha", "nan"),
        ("--margin", "0"),
        ("--margin", "wide"),
        ("--draws", "9"),
        ("--seed", "-1"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(sweep: Path, option: tuple[str, str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main([str(sweep), f"{option[0]}={option[1]}"])

    assert refused.value.code == 2
