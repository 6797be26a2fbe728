"""`jevexp summarize`: the summary again, by either harness, held against the stored one."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jevexp.cli.verbs.summarize import main
from jevexp.datasets import load_dataset
from jevexp.errors import InputError
from jevexp.settings import PINNED_COMMIT
from tests.support.cli import jevexp
from tests.support.compose import compose
from tests.support.runs import make_killed_run, make_run, manifest, noul_tasks
from tests.support.upstream import from_git, install

TASKS = noul_tasks(4)


@pytest.fixture
def tasks_file(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(f"{json.dumps(one.canonical())}\n" for one in TASKS))
    return path


@pytest.fixture
def run(tmp_path: Path, tasks_file: Path) -> Path:
    path = tmp_path / "run"
    make_run(path, TASKS, wrong_ids=["t1"], **about(path, tasks_file))
    return path


def about(path: Path, tasks_file: Path) -> dict[str, Any]:
    """A manifest's entries that name a task file."""
    dataset = compose("dataset=local", f"dataset.path='{tasks_file}'").dataset
    entry = manifest(path).dataset.model_dump()
    resolved = manifest(path).config.resolved | {"dataset": dataset.model_dump(mode="json")}
    return {
        "config": {"sha256": "12" * 32, "overrides": [], "resolved": resolved},
        "dataset": entry | {"dataset_hash": load_dataset(dataset).dataset_hash},
    }


def change(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The stand-in, installed as if it were the pinned commit."""
    monkeypatch.syspath_prepend(str(install(tmp_path / "site", from_git(PINNED_COMMIT))))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "jevbench"]:
        del sys.modules[name]


def test_the_same_summary_is_status_0_and_a_table(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(run)]) == 0
    said = capsys.readouterr().out
    assert "0.750" in said
    assert said.endswith("the same as summary.json\n")


def test_json_is_the_summary_and_nothing_else(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(run), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == json.loads((run / "summary.json").read_text())
    assert said.err == "the same as summary.json\n"


@pytest.mark.usefixtures("upstream")
def test_the_pinned_harness_computes_it_as_well(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(run), "--harness", "upstream"]) == 0
    assert "the same as summary.json" in capsys.readouterr().out


def test_a_pinned_harness_that_is_not_here_is_refused(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(install(tmp_path / "other", None, version="0.1.0")))
    with pytest.raises(InputError, match=r"where another project has that name"):
        main([str(run), "--harness", "upstream"])


def test_a_different_summary_is_status_1_and_says_where(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(run / "summary.json", accuracy=0.5, surplus=1)
    assert main([str(run)]) == 1
    said = capsys.readouterr().out
    assert "differs from summary.json: accuracy: stored 0.5, computed 0.75\n" in said
    assert "differs from summary.json: surplus: only stored\n" in said


def test_changed_results_are_found_out(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = run / "results.jsonl"
    results.write_text(results.read_text().replace('"correct": false', '"correct": true'))
    assert main([str(run)]) == 1
    said = capsys.readouterr().out
    assert "n_correct: stored 3, computed 4" in said
    assert "more places" in said


def test_a_killed_run_has_nothing_to_compare_with(
    tmp_path: Path, tasks_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "killed"
    make_killed_run(path, TASKS, attempted=2)
    change(path / "manifest.json", **about(path, tasks_file))
    assert main([str(path)]) == 1
    assert "no summary.json to compare with" in capsys.readouterr().out


def test_tasks_that_have_changed_are_refused(run: Path, tasks_file: Path) -> None:
    tasks_file.write_text(tasks_file.read_text().replace("A fact.", "Another fact."))
    with pytest.raises(InputError, match=r"^dataset: the tasks have changed since the run: "):
        main([str(run)])


def test_what_is_no_run_is_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is this a run directory"):
        main([str(tmp_path / "nothing")])
    (run / "results.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match=r"results\.jsonl:1: not a record"):
        main([str(run)])
    (run / "results.jsonl").unlink()
    with pytest.raises(InputError, match=r"results\.jsonl: No such file"):
        main([str(run)])


def test_results_of_other_tasks_are_refused(run: Path) -> None:
    results = run / "results.jsonl"
    results.write_text(results.read_text().replace('"t1"', '"elsewhere"'))
    with pytest.raises(InputError, match="the results do not fit the tasks: task 'elsewhere'"):
        main([str(run)])


def test_a_checkout_goes_with_the_pinned_harness_only(run: Path) -> None:
    with pytest.raises(InputError, match=r"^harness\.path: only harness=upstream takes one"):
        main([str(run), "--harness-path", "here"])


def test_it_is_a_verb(tmp_path: Path) -> None:
    finished = jevexp("summarize", "nothing", cwd=tmp_path)
    assert finished.status == 2
    assert "error: nothing/manifest.json: No such file" in finished.err
