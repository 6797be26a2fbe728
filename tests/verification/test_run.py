"""Whatever the program leaves behind verifies, however the run ended."""

import json
from pathlib import Path

import pytest

from jevexp.cli.main import main
from jevexp.errors import InputError
from jevexp.settings import PINNED_COMMIT
from jevexp.store.directory import RESULTS
from jevexp.verification import Report, Result, State, verify_run
from tests.support.cli import jevexp_process, only_run
from tests.support.forgery import edit_line, lines, reseal
from tests.support.in_process import run_here
from tests.support.runs import noul_tasks
from tests.support.upstream import from_git, install

CHECKS = [
    "files", "manifest", "tasks", "attempts", "raw files", "requests", "answers", "scores",
    "costs", "ledger", "stop", "identity", "summary", "numbers",
]  # fmt: skip


def complaints(report: Report) -> list[str]:
    return [
        f"{check.name}: {failure.place}: {failure.message}"
        for check in report.checks
        for failure in check.failures
    ]


def test_a_complete_run_passes_every_check(noisy: Path) -> None:
    report = verify_run(noisy)

    assert complaints(report) == []
    assert report.state is State.VERIFIED
    assert [check.name for check in report.checks] == CHECKS
    assert {check.result for check in report.checks} == {Result.PASS}
    assert report.check("answers").count == 12
    assert report.check("ledger").count == 1 + 2 * 12 + 1
    assert report.not_covered == ("checksums.sha256",)


def script(place: Path, *answers: object) -> str:
    path = place / "script.json"
    path.write_text(json.dumps(answers))
    return f"backend.script={path}"


def test_a_run_that_the_cap_ended_verifies(tmp_path: Path) -> None:
    report = verify_run(run_here(tmp_path, "dataset=demo", "backend=fake", "caps.cap_usd=0.1"))

    assert complaints(report) == []
    assert report.state is State.VERIFIED
    assert report.check("attempts").count == 5


def test_a_run_of_failures_and_bad_answers_verifies(tmp_path: Path) -> None:
    boom = {"error": "boom", "status_code": 500}
    answers = script(
        tmp_path,
        {"probs": {"no": 0.5, "yes": 0.51}},
        {"probs": {"no": 2, "yes": -1}},
        {"probs": {"maybe": 1}},
        {"error": "odd", "status_code": 422},
        boom,
        boom,
        boom,
    )
    report = verify_run(
        run_here(tmp_path, "dataset=demo", "backend=fake", "backend.mode=script", answers)
    )

    assert complaints(report) == []
    assert report.state is State.VERIFIED
    assert report.check("answers").count == 7


def without_truth(place: Path) -> str:
    """Yes or no questions, of which only the last one has a truth."""
    path = place / "tasks.jsonl"
    tasks = [
        task.model_copy(update={"expected": "yes" if task.id == "t4" else None})
        for task in noul_tasks(5)
    ]
    path.write_text("".join(f"{task.model_dump_json()}\n" for task in tasks))
    return f"dataset.path={path}"


def test_without_a_truth_failures_are_wrong_and_runs_that_said_null_of_them_verify(
    tmp_path: Path,
) -> None:
    answers = script(
        tmp_path,
        {"probs": {"no": 0.25, "yes": 0.75}},
        {"probs": {"no": 2, "yes": -1}},
        {"error": "boom", "status_code": 500},
        {"probs": {"maybe": 1}},
        {"probs": {"no": 0.25, "yes": 0.75}},
    )
    run = run_here(tmp_path, "dataset=local", without_truth(tmp_path), "backend=fake",
                   "backend.mode=script", answers)  # fmt: skip

    assert [record["correct"] for record in lines(run, RESULTS)] == [
        None, False, False, False, True,
    ]  # fmt: skip
    assert complaints(verify_run(run)) == []

    # Runs of earlier versions said null of all of these, and counted nothing else for it.
    for number in (1, 2, 3):
        edit_line(run, RESULTS, number, lambda record: record.update(correct=None))
    reseal(run)
    assert complaints(verify_run(run)) == []

    edit_line(run, RESULTS, 0, lambda record: record.update(correct=False))
    edit_line(run, RESULTS, 1, lambda record: record.update(correct=True))
    reseal(run)
    assert [failure.line for failure in verify_run(run).check("scores").failures] == [1, 2]


def test_a_run_by_the_pinned_harness_verifies_with_and_without_it(tmp_path: Path) -> None:
    """With good, rescaled and bad answers, a wrong request and failures."""
    site = install(tmp_path / "site", from_git(PINNED_COMMIT))
    boom = {"error": "boom", "status_code": 500}
    answers = script(
        tmp_path,
        {"probs": {"no": 0.25, "yes": 0.75}},
        {"probs": {"no": 0.5, "yes": 0.51}},
        {"probs": {"no": 2, "yes": -1}},
        {"error": "odd", "status_code": 422},
        *[boom] * 3,
    )
    overrides = ("dataset=demo", "tracking=none", "backend=fake", "backend.mode=script", answers)
    done = jevexp_process("harness=upstream", *overrides, cwd=tmp_path, PYTHONPATH=str(site))
    assert done.status == 1, done.out + done.err
    run = only_run(tmp_path / "outputs")

    report = verify_run(run)

    assert complaints(report) == []
    assert report.check("summary").notes == ["the pinned harness is not here; computed with ours"]
    again = jevexp_process("verify", str(run), "--json", cwd=tmp_path, PYTHONPATH=str(site))
    assert again.status == 0, again.out
    (found,) = json.loads(again.out)["runs"]
    assert [check["notes"] for check in found["checks"] if check["name"] == "summary"] == [[]]


def test_a_run_that_reserves_nothing_verifies(tmp_path: Path) -> None:
    report = verify_run(
        run_here(tmp_path, "dataset=demo", "backend=fake", "caps=unmetered", "pricing=local")
    )

    assert complaints(report) == []
    assert report.state is State.VERIFIED


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("manifest.json", '{"name": "My app", "icons": []}', "is not that of a run"),
        ("manifest.json", "no JSON", "is not that of a run"),
        ("results.jsonl", '{"score": 1}', "is missing"),
        ("notes.txt", "nothing", "is missing"),
    ],
)
def test_a_folder_with_files_of_the_same_names_is_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: str, reason: str
) -> None:
    (tmp_path / name).write_text(content)

    assert main(["verify", str(tmp_path)]) == 2
    done = capsys.readouterr()
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert line.startswith(f"error: {tmp_path}: ")
    assert reason in line


def test_a_run_whose_manifest_is_no_longer_one_fails(run: Path) -> None:
    (run / "manifest.json").write_text("{}")

    assert verify_run(run).state is State.FAILED


def test_what_is_no_run_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"manifest\.json is missing"):
        verify_run(tmp_path)
    with pytest.raises(InputError, match="No such file"):
        verify_run(tmp_path / "nothing")
