"""`jevexp verify` and `jevexp receipt`: what they print, and their exit statuses."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jevexp.cli.verbs.receipt import main as receipt
from jevexp.cli.verbs.verify import main as verify
from jevexp.errors import InputError
from tests.support.cli import jevexp
from tests.support.forgery import edit, edit_line, reseal
from tests.support.in_process import run_here

TASKS = ("dataset=demo", "backend=fake", "backend.mode=noise", "caps.limit=4")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run of four tasks; not to be changed."""
    return run_here(tmp_path_factory.mktemp("made"), *TASKS)


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A copy of that run, to be changed."""
    return Path(shutil.copytree(made, tmp_path / "run"))


def test_a_verified_run_is_a_table_and_status_0(run: Path) -> None:
    done = jevexp("verify", str(run), cwd=run)

    assert done.status == 0
    assert done.err == ""
    (row,) = [line for line in done.out.splitlines() if line.startswith("  scores")]
    assert row.split()[-2:] == ["pass", "4"]
    assert done.out.splitlines()[-1] == "verified: a run that is complete"
    assert "not covered by checksums: checksums.sha256" in done.out


def test_a_failure_names_file_and_line_and_gives_status_1(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_line(run, "results.jsonl", 2, lambda record: record.update(predicted="maybe"))
    reseal(run)

    assert verify([str(run)]) == 1

    out = capsys.readouterr().out
    assert "  scores failed: results.jsonl:3: predicted: 'maybe', scored again " in out
    assert out.splitlines()[-1].startswith("failed: scores")


def test_an_incomplete_run_gives_its_reason_and_status_3(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "checksums.sha256").unlink()

    assert verify([str(run)]) == 3

    assert capsys.readouterr().out.splitlines()[-1].startswith("incomplete: there is no checksums")


def test_a_sweep_is_a_line_a_run_and_the_worst_decides(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("10-last", "2-first"):
        shutil.copytree(made, tmp_path / "sweep" / name)
    assert verify([str(tmp_path / "sweep")]) == 0
    good = capsys.readouterr().out.splitlines()
    assert [line.rpartition("/")[2] for line in good] == [
        "2-first", "verified: a run that is complete",
        "10-last", "verified: a run that is complete",
    ]  # fmt: skip

    (tmp_path / "sweep" / "10-last" / "run.log").write_text("other")
    assert verify([str(tmp_path / "sweep")]) == 1
    assert "files failed: run.log: its SHA-256" in capsys.readouterr().out


def checks(out: str) -> dict[str, Any]:
    (run,) = json.loads(out)["runs"]
    return {check["name"]: check for check in run["checks"]} | {"": run}


def test_json_holds_every_check(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit_line(run, "results.jsonl", 2, lambda record: record.update(valid=False))
    reseal(run)

    assert verify([str(run), "--json"]) == 1

    found = checks(capsys.readouterr().out)
    assert (found[""]["state"], found[""]["status"]) == ("failed", "complete")
    assert found["scores"]["result"] == "fail"
    assert found["scores"]["failures"] == [
        {
            "file": "results.jsonl",
            "line": 3,
            "message": "valid: False, scored again True",
        }
    ]
    assert found["files"]["result"] == "pass"


def test_tasks_that_are_not_here_are_not_checked_until_they_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    demo = Path(__file__).parents[2] / "src/jevexp/datasets/demo.jsonl"
    shutil.copy(demo, "mine.jsonl")
    run = run_here(tmp_path, "dataset=local", "dataset.path=mine.jsonl", *TASKS[1:])
    Path("mine.jsonl").rename("moved.jsonl")

    assert verify([str(run), "--json"]) == 0
    found = checks(capsys.readouterr().out)
    assert found["tasks"]["result"] == found["scores"]["result"] == "not checked"
    assert found["summary"]["reason"] == "tasks are not here"
    assert found["answers"]["count"] == found["requests"]["count"] == 4
    assert verify([str(run)]) == 0
    assert "tasks not checked: tasks are not here: " in capsys.readouterr().out

    assert verify([str(run), "--tasks", "moved.jsonl", "--json"]) == 0
    found = checks(capsys.readouterr().out)
    assert {check["result"] for name, check in found.items() if name} == {"pass"}


def test_a_receipt_is_printed_alone_and_checked(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = jevexp("receipt", str(run), cwd=tmp_path)
    assert (done.status, done.err) == (0, "")
    (tmp_path / "receipt.json").write_text(done.out)

    assert verify([str(run), "--receipt", str(tmp_path / "receipt.json")]) == 0
    assert "receipt" in capsys.readouterr().out

    edit(run, "manifest.json", lambda manifest: manifest.update(started="2020-01-01T00:00:00Z"))
    reseal(run)
    assert verify([str(run)]) == 0
    assert verify([str(run), "--receipt", str(tmp_path / "receipt.json")]) == 1
    out = capsys.readouterr().out
    assert (
        "receipt failed: checksums.sha256: files.checksums.sha256: is not as in the receipt" in out
    )


@pytest.mark.parametrize(("name", "status"), [("run.log", 1), ("checksums.sha256", 3)])
def test_no_receipt_for_a_run_that_does_not_verify(
    run: Path, name: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / name).unlink()

    assert receipt([str(run)]) == status

    said = capsys.readouterr()
    assert said.out == ""
    assert "no receipt: only a run that verifies gets one" in said.err


def test_text_of_a_stranger_acts_on_no_terminal(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_line(run, "results.jsonl", 2, lambda record: record.update(task_id="\x1b[2J\u202ex\ny"))
    reseal(run)

    for arguments in ([str(run)], [str(run), "--json"]):
        assert verify(arguments) == 1
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert "\u202e" not in out


def test_unusable_input_is_one_line_and_status_2(run: Path, tmp_path: Path) -> None:
    done = jevexp("verify", str(tmp_path), cwd=tmp_path)
    assert done.status == 0  # the run right below
    done = jevexp("verify", str(run / "raw"), cwd=tmp_path)
    assert done.status == 2
    assert done.err.startswith("error: ")
    assert len(done.err.splitlines()) == 1
    with pytest.raises(InputError, match="no such folder"):
        verify([str(tmp_path / "nothing")])
    shutil.copytree(run, tmp_path / "second")
    with pytest.raises(InputError, match="a receipt is of one run, found 2"):
        verify([str(tmp_path), "--receipt", "receipt.json"])


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "folder: no run here and none right below: manifest.json is missing"),
        ({"notes.txt": "hi"}, "folder: no run here and none right below: manifest.json is missing"),
        (
            {"manifest.json": '{"name": "an app"}'},
            "folder: is no run directory: manifest.json is not that of a run; give a run "
            "directory, or a sweep's",
        ),
    ],
    ids=["empty", "other files", "another program's manifest"],
)
def test_a_folder_that_is_no_run_is_one_line_and_status_2(
    workplace: Path, files: dict[str, str], reason: str
) -> None:
    folder = workplace / "folder"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)

    done = jevexp("verify", "folder", cwd=workplace)

    assert (done.status, done.out, done.err) == (2, "", f"error: {reason}\n")
