"""The comparison of a sweep is a run of its own, and does not get between the others."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jevexp.store import RunDirectory
from jevexp.tracking import Change, SweepComparison, TrackingError
from jevexp.tracking.mlflow import MlflowTracker
from tests.support.runs import DATASET_HASH, make_run, noul_tasks
from tests.tracking.test_tracker import artifact, names

TASKS = noul_tasks(2)


def sweep(folder: Path, *, wrong: str = "") -> list[RunDirectory]:
    return [
        make_run(folder / f"{n}-run", TASKS, sweep=folder.name, wrong_ids={wrong} if n else ())
        for n in range(2)
    ]


def comparison(runs: list[RunDirectory], name: str = "sweep", text: str = "a") -> SweepComparison:
    def report(folder: Path) -> None:
        (folder / "plots").mkdir()
        (folder / "plots" / "p.csv").write_text(text)
        (folder / "report.html").write_text(f"<p>{text}")

    return SweepComparison(
        name, "comparison · original · 2 runs", runs, dict, lambda _: text, report
    )


def test_it_has_a_kind_a_description_its_tasks_and_its_report(
    tracker: MlflowTracker, client: Any, tmp_path: Path
) -> None:
    run = tracker.log_comparison(comparison(sweep(tmp_path / "sweep")))

    assert run.change is Change.CREATED
    found = client.get_run(run.run_id)
    assert found.info.run_name == "comparison · original · 2 runs"
    assert found.info.status == "FINISHED"
    assert found.data.tags["jev.kind"] == "comparison"
    assert found.data.tags["jev.sweep"] == "sweep"
    assert found.data.tags["jev.compared"] == "2"
    assert found.data.tags["mlflow.note.content"] == "a"
    assert found.data.metrics == found.data.params == {}
    (dataset,) = found.inputs.dataset_inputs
    assert dataset.dataset.digest == DATASET_HASH[:12]
    assert names(client, run.run_id) == {"report.html", "plots"}


def test_the_same_evidence_is_not_compared_again(
    tracker: MlflowTracker, client: Any, tmp_path: Path
) -> None:
    runs = sweep(tmp_path / "sweep")
    first = tracker.log_comparison(comparison(runs))

    def never(_: object) -> str:
        raise AssertionError("computed again")

    again = tracker.log_comparison(
        SweepComparison("sweep", "name", runs, dict, never, lambda _: pytest.fail("again"))
    )

    assert (again.run_id, again.change) == (first.run_id, Change.NONE)


def test_other_evidence_of_the_sweep_replaces_it(
    tracker: MlflowTracker, client: Any, tmp_path: Path
) -> None:
    first = tracker.log_comparison(comparison(sweep(tmp_path / "early" / "sweep")))
    later = sweep(tmp_path / "late" / "sweep", wrong="t1")

    second = tracker.log_comparison(comparison(later, text="b"))

    assert (second.run_id, second.change) == (first.run_id, Change.UPDATED)
    assert client.get_run(first.run_id).data.tags["mlflow.note.content"] == "b"
    assert artifact(client, first.run_id, "report.html").read_text() == "<p>b"


def test_one_that_was_logged_by_half_is_completed(
    tracker: MlflowTracker, client: Any, tmp_path: Path
) -> None:
    runs = sweep(tmp_path / "sweep")

    def fail(_: Path) -> None:
        raise ZeroDivisionError

    with pytest.raises(TrackingError, match="ZeroDivisionError"):
        tracker.log_comparison(replace(comparison(runs), report=fail))

    run = tracker.log_comparison(comparison(runs))

    assert run.change is Change.UPDATED
    assert len(client.search_runs([run.experiment_id])) == 1
    assert names(client, run.run_id) == {"report.html", "plots"}


def test_two_sweeps_have_one_each_whatever_they_are_called(
    tracker: MlflowTracker, tmp_path: Path
) -> None:
    one = tracker.log_comparison(comparison(sweep(tmp_path / "a"), name="it's"))
    two = tracker.log_comparison(comparison(sweep(tmp_path / "b"), name='"b"'))

    assert one.run_id != two.run_id


def test_it_is_no_run_of_the_sweep(tracker: MlflowTracker, tmp_path: Path) -> None:
    runs = sweep(tmp_path / "sweep")
    tracked = [tracker.log(run, TASKS) for run in runs]
    made = tracker.log_comparison(comparison(runs))

    ids = sorted(run.run_id for run in tracked)
    for found in (
        tracker.runs("sweep"),
        tracker.runs(),
        tracker.store.select("tags.jev.sweep = 'sweep'"),
    ):
        assert sorted(run.run_id for run in found) == ids
    *others, report = tracker.addresses(tracked, [made], "http://host")
    assert made.run_id not in "".join(others)
    assert report.startswith("report    http://host/#/experiments/")
    assert f"/runs/{made.run_id}/artifacts/report.html?" in report


def test_it_is_found_by_the_runs_of_its_sweep(tracker: MlflowTracker, tmp_path: Path) -> None:
    runs = sweep(tmp_path / "sweep")
    tracked = [tracker.log(run, TASKS) for run in runs]
    alone = tracker.log(make_run(tmp_path / "alone", TASKS), TASKS)

    assert tracker.store.find_comparison(tracked[0].run_id) == []
    made = tracker.log_comparison(comparison(runs))

    assert [run.run_id for run in tracker.store.find_comparison(tracked[0].run_id)] == [made.run_id]
    assert tracker.store.find_comparison(alone.run_id) == []


def test_it_names_the_runs_so_that_they_can_be_told_apart(
    tracker: MlflowTracker, client: Any, tmp_path: Path
) -> None:
    runs = sweep(tmp_path / "sweep")
    first, second = (tracker.log(run, TASKS) for run in runs)

    tracker.log_comparison(
        replace(comparison(runs), names=lambda: {second.directory: "original · seed=2 · llama_cpp"})
    )

    assert client.get_run(first.run_id).info.run_name == first.name
    assert client.get_run(second.run_id).info.run_name == "original · seed=2 · llama_cpp"
    assert tracker.log(runs[1], TASKS).change is Change.NONE
