"""From MLflow back to a run directory: the original where it is, else a verified copy."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from jevexp.tracking import TrackingError
from jevexp.tracking.mlflow import MlflowTracker
from tests.support.runs import make_killed_run, make_run, noul_tasks
from tests.tracking.conftest import MakeTracker
from tests.tracking.test_tracker import artifact

TASKS = noul_tasks(3)


@pytest.fixture
def gone(tracker: MlflowTracker, tmp_path: Path) -> str:
    """The id of a run whose directory is no longer here."""
    run = tracker.log(make_run(tmp_path / "run", TASKS, wrong_ids={"t1"}), TASKS)
    shutil.rmtree(tmp_path / "run")
    return run.run_id


def test_a_run_that_is_here_is_read_where_it_is(tracker: MlflowTracker, tmp_path: Path) -> None:
    directory = make_run(tmp_path / "run", TASKS)
    run = tracker.log(directory, TASKS)

    assert tracker.store.fetch(run.run_id, tmp_path / "copies").path == directory.path
    assert not (tmp_path / "copies").exists()


def test_a_run_that_is_gone_is_downloaded(
    tracker: MlflowTracker, gone: str, tmp_path: Path
) -> None:
    found = tracker.store.fetch(gone, tmp_path / "copies")

    assert found.path == tmp_path / "copies" / gone / "run"
    assert [record.correct for record in found.records()] == [True, False, True]
    assert found.read_manifest().run == "run"
    assert found.read_summary() is not None


def test_a_run_that_was_replaced_is_downloaded(tracker: MlflowTracker, tmp_path: Path) -> None:
    run = tracker.log(make_run(tmp_path / "run", TASKS), TASKS)
    shutil.rmtree(tmp_path / "run")
    make_run(tmp_path / "run", TASKS, wrong_ids={"t0"})

    found = tracker.store.fetch(run.run_id, tmp_path / "copies")

    assert all(record.correct for record in found.records())


def test_a_killed_run_is_downloaded_as_far_as_it_came(
    tracker: MlflowTracker, tmp_path: Path
) -> None:
    run = tracker.log(make_killed_run(tmp_path / "run", TASKS, attempted=2), TASKS)
    shutil.rmtree(tmp_path / "run")

    assert len(list(tracker.store.fetch(run.run_id, tmp_path / "copies").records())) == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("results.jsonl", "its artifact results.jsonl is not what was logged"),
        ("checksums.sha256", "its artifacts are not those that were logged"),
    ],
)
def test_files_that_were_changed_in_mlflow_are_refused(
    tracker: MlflowTracker, client: Any, gone: str, tmp_path: Path, name: str, message: str
) -> None:
    with artifact(client, gone, name).open("a") as file:
        file.write("\n")

    with pytest.raises(TrackingError, match=message):
        tracker.store.fetch(gone, tmp_path / "copies")


def test_a_file_that_is_missing_in_mlflow_is_named(
    tracker: MlflowTracker, client: Any, gone: str, tmp_path: Path
) -> None:
    artifact(client, gone, "results.jsonl").unlink()

    with pytest.raises(TrackingError, match=r"its artifact results\.jsonl is missing"):
        tracker.store.fetch(gone, tmp_path / "copies")


def test_somebody_elses_run_is_refused(
    tracker: MlflowTracker, client: Any, gone: str, tmp_path: Path
) -> None:
    other = client.create_run(client.get_run(gone).info.experiment_id).info.run_id

    with pytest.raises(TrackingError, match="not a run that jevexp logged"):
        tracker.store.fetch(other, tmp_path)
    with pytest.raises(TrackingError, match="not found"):
        tracker.store.fetch("0" * 32, tmp_path)


def test_a_filter_selects_runs_oldest_first(tracker: MlflowTracker, tmp_path: Path) -> None:
    for number in (1, 0, 2):
        started = f"2026-03-01T1{number}:00:00.000Z"
        sweep = "it's" if number else None
        tracker.log(make_run(tmp_path / f"run{number}", TASKS, started=started, sweep=sweep))

    def found(where: str) -> list[str]:
        return [run.directory for run in tracker.store.select(where)]

    assert found('tags.jev.sweep = "it\'s"') == ["run1", "run2"]
    assert found('tags.`jev.sweep` = "it\'s"') == ["run1", "run2"]
    assert found("tags.jev.run = 'run0' and metrics.accuracy > 0.9") == ["run0"]
    assert found("params.dataset.name = 'nothing'") == []


def test_what_is_no_filter_is_said_in_a_line(tracker: MlflowTracker, tmp_path: Path) -> None:
    tracker.log(make_run(tmp_path / "run", TASKS))
    with pytest.raises(TrackingError, match="Invalid clause"):
        tracker.store.select("nonsense")


def test_looking_makes_neither_a_database_nor_an_experiment(
    make: MakeTracker, tmp_path: Path, client: Any
) -> None:
    missing = make(uri=f"sqlite:///{tmp_path}/no.db")
    with pytest.raises(TrackingError, match="no such database; nothing was logged there yet"):
        missing.store.select("tags.jev.sweep = 's'")
    assert list(tmp_path.iterdir()) == []

    make(experiment="there").log(make_run(tmp_path / "run", TASKS))
    with pytest.raises(TrackingError, match="there is no experiment 'elsewhere'"):
        make(experiment="elsewhere").store.select("tags.jev.sweep = 's'")
    assert client.get_experiment_by_name("elsewhere") is None
