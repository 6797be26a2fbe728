"""`jevexp export`: which directories go where, and what is said about it."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from jevexp.cli.verbs.export import main
from jevexp.datasets import planned_tasks_or_none
from jevexp.errors import InputError
from jevexp.store.finding import run_directories
from tests.support.runs import make_killed_run, make_run, manifest, noul_tasks, tracking

TASKS = noul_tasks(2)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("export") / "outputs"


def config(path: Path, **changed: Any) -> dict[str, Any]:
    """A resolved configuration with other tracking settings."""
    resolved = manifest(path).config.resolved
    resolved["tracking"] = tracking(**changed).model_dump(mode="json")
    return {"sha256": "12" * 32, "overrides": [], "resolved": resolved}


def test_a_run_goes_to_the_database_of_the_folder_that_it_lies_in(
    outputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = outputs / "day" / "run"
    make_run(path, TASKS)
    monkeypatch.chdir(outputs.parent.parent)

    assert main([str(path)]) == 0
    assert main([str(path)]) == 0

    said = capsys.readouterr().out.splitlines()
    assert f"logged      {path}" in said
    assert f"unchanged   {path}" in said
    assert any(line.startswith("run       http://127.0.0.1:5000/#/experiments/") for line in said)
    assert f"start     jevexp ui --outputs {outputs}" in said
    assert (outputs / "mlflow.db").is_file()


def test_a_sweep_is_all_its_runs_in_order(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = outputs / "sweeps" / "day" / "sweep"
    for name in ("10-run", "2-run"):
        make_run(sweep / name, TASKS, sweep="sweep")

    assert main([str(sweep), "--experiment", "of the sweep"]) == 0

    said = capsys.readouterr().out.splitlines()
    assert said[:2] == [f"logged      {sweep / name}" for name in ("2-run", "10-run")]
    assert said[2] == f"logged      comparison of {sweep}"
    assert any(line.startswith("compare   ") for line in said)
    assert any(line.startswith("report    ") for line in said)
    # Two runs and their comparison.
    pages = [page.read_text() for page in outputs.glob("mlartifacts/*/artifacts/report.html")]
    assert sum("<title>" in page for page in pages) >= 3

    assert main([str(sweep), "--experiment", "of the sweep"]) == 0

    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said[:3]] == ["unchanged"] * 3


def test_a_sweep_with_a_copy_of_a_run_in_it_has_no_comparison(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = outputs / "sweeps" / "day" / "copied"
    make_run(sweep / "0-run", TASKS, sweep="copied")
    shutil.copytree(sweep / "0-run", sweep / "1-run")

    assert main([str(sweep), "--experiment", "copied"]) == 0

    said = " ".join(capsys.readouterr().out.split())
    reason = f"{sweep}/1-run: a copy of {sweep}/0-run: both are the run '0-run'"
    assert f"no comparison of {sweep}: {reason}" in said
    assert "logged comparison" not in said


def test_runs_that_cannot_be_compared_are_logged_without_a_comparison(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = outputs / "sweeps" / "day" / "mixed"
    other = {"name": "demo", "dataset_hash": "99" * 32, "n_tasks": 2, "files": [], "pin": {}}
    make_run(sweep / "0-run", TASKS, sweep="mixed")
    make_run(sweep / "1-run", TASKS, sweep="mixed", dataset=other)

    assert main([str(sweep), "--experiment", "mixed"]) == 0

    said = capsys.readouterr().out
    assert f"no comparison of {sweep}: " in said
    assert "other tasks than" in said


def test_a_folder_that_is_no_sweep_is_not_compared(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        make_run(outputs / "folder" / name, TASKS, started=f"2026-04-0{ord(name) - 96}T10:00:00Z")

    assert main([str(outputs / "folder"), "--experiment", "folder"]) == 0
    assert "comparison" not in capsys.readouterr().out


def test_a_run_that_was_tracked_nowhere_is_logged_to_the_default(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = outputs / "untracked"
    make_run(path, TASKS, config=config(path, kind="none"))

    assert main([str(path)]) == 0
    assert f"logged      {path}" in capsys.readouterr().out


def test_a_killed_run_is_logged_with_a_remark(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = outputs / "killed"
    make_killed_run(path, TASKS, attempted=1)

    assert main([str(path)]) == 0
    assert "killed, or still at work" in capsys.readouterr().out


def test_a_server_that_was_down_gets_the_run_later(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = outputs / "later"
    make_run(path, TASKS, config=config(path, uri="http://127.0.0.1:1"))

    assert main([str(path), "--uri", "http://127.0.0.1:1"]) == 1
    assert f"not logged  {path}: http://127.0.0.1:1: cannot be reached" in capsys.readouterr().out

    assert main([str(path), "--uri", f"sqlite:///{outputs}/mlflow.db"]) == 0
    assert f"logged      {path}" in capsys.readouterr().out


def test_a_run_does_not_choose_by_itself_where_it_is_sent_and_with_whose_login(
    outputs: Path,
) -> None:
    path = outputs / "strangers"
    make_run(path, TASKS, config=config(path, uri="https://evil.test", token_env="MY_SECRET"))
    with pytest.raises(InputError) as caught:
        main([str(path)])
    assert str(caught.value) == (
        f"{path}: its own configuration sends it to another place; confirm that with "
        "--uri https://evil.test --token-env MY_SECRET"
    )


@pytest.mark.parametrize("elsewhere", ["/", "/tmp/elsewhere", "..", "."])
def test_a_run_that_lies_nowhere_in_its_outputs_goes_into_those_of_the_working_directory(
    workplace: Path, elsewhere: str
) -> None:
    path = workplace / "unpacked"
    changed = config(path)
    changed["resolved"]["outputs"] = elsewhere
    make_run(path, TASKS, config=changed)

    assert main([str(path)]) == 0
    assert sorted(file.name for file in workplace.iterdir()) == ["outputs", "unpacked"]
    assert (workplace / "outputs" / "mlflow.db").is_file()


def test_one_unreadable_run_does_not_stop_the_others(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, good = outputs / "bad", outputs / "good"
    make_run(bad, TASKS)
    (bad / "results.jsonl").write_text("{}\n")
    make_run(good, TASKS)

    assert main([str(bad), str(good)]) == 1

    said = capsys.readouterr().out
    assert f"not logged  {bad}" in said
    assert f"logged      {good}" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing"], "missing: no such folder; give a run directory, or a sweep's"),
        (["empty"], "no run here and none right below: manifest.json is missing"),
        (["run", "--uri", "mlruns"], "tracking.uri: expected a server's"),
        (["run", "--uri", "http://me:hunter2@host"], "username_env and password_env"),
    ],
)
def test_unusable_input_logs_nothing(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    make_run(tmp_path / "run", TASKS)
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InputError) as refused:
        main(arguments)

    assert message in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert not (tmp_path / "outputs").exists()


def test_a_folder_without_a_number_sorts_by_name(tmp_path: Path) -> None:
    for name in ("b", "a"):
        make_run(tmp_path / name, TASKS)

    assert [one.path.name for one in run_directories(tmp_path)] == ["a", "b"]


def test_tasks_that_would_need_a_download_are_done_without(tmp_path: Path) -> None:
    dataset = {
        "name": "original",
        "source": "pinned",
        "repository": "someone/benchmark",
        "commit": "c0ffee",
        "base_url": "http://127.0.0.1:1",
        "files": [{"path": "a.jsonl", "sha256": "00" * 32, "bytes": 1, "tasks": 1}],
    }
    resolved = manifest(tmp_path).config.resolved | {"dataset": dataset}

    found = planned_tasks_or_none(
        manifest(tmp_path, config={"sha256": "", "overrides": [], "resolved": resolved})
    )

    assert found is None


def test_tasks_that_changed_since_the_run_are_done_without(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    shutil.copy(Path(__file__).parents[1] / "conformance" / "tasks.jsonl", file)
    dataset = {"name": "mine", "source": "local", "path": str(file)}
    resolved = manifest(tmp_path).config.resolved | {"dataset": dataset}

    found = planned_tasks_or_none(
        manifest(tmp_path, config={"sha256": "", "overrides": [], "resolved": resolved})
    )

    assert found is None


def test_a_report_is_logged_unless_the_run_was_configured_without_and_then_when_asked(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = outputs / "plain"
    make_run(path, TASKS, config=config(path, report=False))

    changes = []
    for flags in ([], ["--report"], ["--report"]):
        assert main([str(path), "--experiment", "reports", *flags]) == 0
        changes.append(capsys.readouterr().out.split()[0])

    assert changes == ["logged", "updated", "unchanged"]


def test_a_run_that_was_killed_before_its_first_answer_has_no_report(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = outputs / "early"
    make_killed_run(path, TASKS, attempted=0)

    assert main([str(path), "--experiment", "early"]) == 0
    assert f"logged      {path}" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["raw/more.json", "results.jsonl"])
def test_a_file_with_a_second_name_is_not_sent_anywhere(
    outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = outputs / "day" / f"linked-{name.partition('/')[0]}"
    make_run(path, TASKS)
    (tmp_path / "private").write_text("mine")
    (path / name).unlink(missing_ok=True)
    (path / name).hardlink_to(tmp_path / "private")

    assert main([str(path), "--raw"]) == 1

    assert f"{name} has a second name (a hard link)" in capsys.readouterr().out
