"""One trace a task, read back through MLflow's own client."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jevexp.harness.summary import summarize
from jevexp.store import RunDirectory, RunStatus
from jevexp.tracking import Change, TrackedRun, TrackingError
from jevexp.tracking.mlflow.environment import mlflow_environment
from tests.support.runs import failure, make_run, manifest, noul_tasks
from tests.tracking.conftest import MakeTracker

TASKS = noul_tasks(3)


def traces(client: Any, run: TrackedRun) -> dict[str, Any]:
    with mlflow_environment(10):
        found = client.search_traces(locations=[run.experiment_id], run_id=run.run_id)
    return {trace.info.tags["mlflow.traceName"]: trace for trace in found}


def assessed(trace: Any) -> dict[str, Any]:
    return {
        one.name: (one.expectation or one.feedback).value
        for one in trace.info.assessments  # an expectation is ours, a feedback the run's
    }


def test_without_being_asked_for_there_are_none(
    make: MakeTracker, client: Any, tmp_path: Path
) -> None:
    run = make().log(make_run(tmp_path / "run", TASKS), TASKS)

    assert not run.traced
    assert traces(client, run) == {}


def test_a_trace_says_what_was_asked_and_answered(
    make: MakeTracker, client: Any, tmp_path: Path
) -> None:
    directory = make_run(tmp_path / "run", TASKS, wrong_ids={"t1"})
    run = make(traces=True).log(directory, TASKS)

    found = traces(client, run)
    assert set(found) == {"t0", "t1", "t2"}
    (span,) = found["t1"].data.spans
    assert span.inputs == {
        "task_id": "t1",
        "question": {"type": "noul", "instructions": "Is it so?"},
        "state": "A fact.",
    }
    assert span.outputs == {"predicted": "no", "probs": {"no": 0.75, "yes": 0.25}}
    info = found["t1"].info
    assert (info.state, info.execution_duration) == ("OK", 250)
    assert info.request_time == 1772359210000 - 250
    assert assessed(found["t1"]) == {
        "expected": "yes",
        "outcome": "wrong",
        "correct": False,
        "p_expected": 0.25,
    }
    assert assessed(found["t0"])["correct"] is True
    assert client.get_run(run.run_id).data.tags["jev.traces"] == "3"


def test_a_failure_is_a_trace_with_its_error(
    make: MakeTracker, client: Any, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    directory = RunDirectory.create(path)
    directory.append(failure(TASKS[0]))
    directory.close()
    directory.write_summary(summarize(TASKS[:1], directory.records()))
    directory.write_manifest(manifest(path, status=RunStatus.INCOMPLETE, exit_status=1))
    directory.seal()

    trace = traces(client, make(traces=True).log(directory, TASKS[:1]))["t0"]

    assert trace.info.state == "ERROR"
    assert trace.data.spans[0].outputs == {"error": "timeout", "probs": None}
    assert assessed(trace) == {"expected": "yes", "outcome": "failed", "correct": False}


def test_two_runs_are_asked_the_same(make: MakeTracker, client: Any, tmp_path: Path) -> None:
    tracker = make(traces=True)
    one, two = (
        traces(client, tracker.log(make_run(tmp_path / name, TASKS), TASKS)) for name in "ab"
    )

    assert one["t0"].info.trace_id != two["t0"].info.trace_id
    for name in ("t0", "t1", "t2"):
        # By these the evaluation view pairs them.
        assert one[name].info.request_preview == two[name].info.request_preview
        assert one[name].data.spans[0].inputs == two[name].data.spans[0].inputs


def test_traces_are_added_to_a_run_that_is_there_and_only_once(
    make: MakeTracker, client: Any, tmp_path: Path
) -> None:
    directory = make_run(tmp_path / "run", TASKS)
    plain = make().log(directory, TASKS)

    changes = [make(traces=True).log(directory, TASKS).change for _ in range(2)]

    assert changes == [Change.UPDATED, Change.NONE]
    assert len(traces(client, plain)) == 3


def test_traces_that_were_written_by_half_are_completed(
    make: MakeTracker, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = make_run(tmp_path / "run", TASKS)
    tracker = make(traces=True)
    with monkeypatch.context() as patch:
        patch.setattr("jevexp.tracking.mlflow.writing._span", lambda *_: 1 / 0)
        with pytest.raises(TrackingError, match="ZeroDivisionError"):
            tracker.log(directory, TASKS)

    run = tracker.log(directory, TASKS)

    found = traces(client, run)
    assert run.change is Change.UPDATED
    assert len(found) == 3
    assert [len(trace.info.assessments) for trace in found.values()] == [4, 4, 4]
    assert all(trace.data.spans for trace in found.values())


def test_without_the_tasks_nobody_knows_what_was_asked(
    make: MakeTracker, client: Any, tmp_path: Path
) -> None:
    directory = make_run(tmp_path / "run", TASKS)

    run = make(traces=True).log(directory)
    assert not run.traced
    assert make(traces=True).log(directory, TASKS).change is Change.UPDATED
    assert len(traces(client, run)) == 3


def test_the_links_show_the_last_run_beside_the_first(make: MakeTracker, tmp_path: Path) -> None:
    tracker = make(traces=True)
    runs = [tracker.log(make_run(tmp_path / name, TASKS), TASKS) for name in "ab"]

    def shown(runs: Sequence[TrackedRun]) -> list[str]:
        lines = make().addresses(runs, base="http://host")
        return [line[10:] for line in lines if line.startswith("traces ")]

    assert shown(runs) == [
        f"http://host/#/experiments/{runs[0].experiment_id}/evaluation-runs"
        f"?selectedRunUuid={runs[1].run_id}&compareToRunUuid={runs[0].run_id}"
    ]
    (single,) = shown(runs[:1])
    assert single.endswith(f"?selectedRunUuid={runs[0].run_id}")
    assert shown([make().log(make_run(tmp_path / "c", TASKS))]) == []
