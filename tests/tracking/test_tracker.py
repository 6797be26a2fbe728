"""Logging run directories to a real database, read back through MLflow's own client."""

import json
import os
from html import unescape
from pathlib import Path
from typing import Any
from urllib.request import url2pathname

import pytest

from jevexp.harness.summary import summarize
from jevexp.store import RunDirectory, RunStatus
from jevexp.tracking import Change, TrackingError
from jevexp.tracking.mlflow import MlflowTracker
from tests.support.runs import (
    DATASET_HASH,
    WEIGHTS,
    failure,
    make_killed_run,
    make_run,
    manifest,
    noul_tasks,
)
from tests.tracking.conftest import MakeTracker

TASKS = noul_tasks(4)


def artifact(client: Any, run_id: str, name: str) -> Path:
    root = client.get_run(run_id).info.artifact_uri.removeprefix("file://")
    return Path(url2pathname(root)) / name


def names(client: Any, run_id: str) -> set[str]:
    return {one.path for one in client.list_artifacts(run_id)}


def test_a_run_is_called_by_what_it_is(tracker: MlflowTracker, client: Any, tmp_path: Path) -> None:
    run = tracker.log(make_run(tmp_path / "run", TASKS), TASKS)

    found = client.get_run(run.run_id)
    assert found.info.run_name == run.name == "original · gemma4_q4km · llama_cpp"
    assert found.info.status == "FINISHED"
    assert (found.info.start_time, found.info.end_time) == (1772359200000, 1772359230500)


def test_the_numbers_of_the_summary_become_metrics(
    tracker: MlflowTracker, client: Any, tmp_path: Path
) -> None:
    directory = make_run(tmp_path / "run", TASKS, wrong_ids={"t1"})
    summary = directory.read_summary()
    assert summary is not None

    metrics = client.get_run(tracker.log(directory, TASKS).run_id).data.metrics

    # No score task was asked, so there is no ordinal MAE.
    assert metrics == {
        "accuracy": 0.75,
        "macro_accuracy": 0.75,
        "brier_mean": summary.brier_mean,
        "ece": summary.number("ece"),
        "coverage": 1.0,
        "schema_validity": 1.0,
        "latency/p50_s": 0.25,
        "latency/p95_s": 0.25,
        "charged_usd": 0.08,
        "family/policy/accuracy": 1.0,
        "family/policy/brier_mean": summary.per_family["policy"].brier_mean,
        "family/routing/accuracy": 0.5,
        "family/routing/brier_mean": summary.per_family["routing"].brier_mean,
    }


def test_what_identifies_a_run_becomes_tags(
    tracker: MlflowTracker, client: Any, tmp_path: Path
) -> None:
    run = tracker.log(make_run(tmp_path / "0-run", TASKS, sweep="12-00-00-abc"), TASKS)

    tags = client.get_run(run.run_id).data.tags
    assert {name: value for name, value in tags.items() if name.startswith("jev.")} == {
        "jev.kind": "run",
        "jev.run": "0-run",
        "jev.path": str(tmp_path.resolve() / "0-run"),
        "jev.sweep": "12-00-00-abc",
        "jev.status": "complete",
        "jev.exit_status": "0",
        "jev.config_sha256": "12" * 32,
        "jev.dataset_hash": DATASET_HASH,
        "jev.model": "gemma-4-31b-kv9-q4km-mm",
        "jev.model_answered": "gemma",
        "jev.weights_sha256": WEIGHTS,
        "jev.quantization": "Q2_K",
        "jev.commit": "ef" * 20,
        "jev.version": "0.1.0",
        "jev.evidence_sha256": tags["jev.evidence_sha256"],
    }
    assert tags["mlflow.source.git.commit"] == "ef" * 20
    assert "mlflow.user" not in tags


def test_the_description_says_what_where_and_how_well(
    tracker: MlflowTracker, client: Any, tmp_path: Path
) -> None:
    run = tracker.log(make_run(tmp_path / "run", TASKS, wrong_ids={"t1"}), TASKS)

    note = unescape(client.get_run(run.run_id).data.tags["mlflow.note.content"])
    assert "| Accuracy | **0.750** (3 of 4) |" in note
    assert "| Dataset | original @ bb05a335bc80 |" in note
    assert f"Evidence: `{tmp_path / 'run'}`" in note


def test_the_dataset_is_an_input_with_its_pin(
    tracker: MlflowTracker, client: Any, tmp_path: Path
) -> None:
    run = tracker.log(make_run(tmp_path / "run", TASKS), TASKS)

    (found,) = client.get_run(run.run_id).inputs.dataset_inputs
    assert (found.dataset.name, found.dataset.digest) == ("original@bb05a33", DATASET_HASH[:12])
    assert [(tag.key, tag.value) for tag in found.tags] == [("mlflow.data.context", "evaluation")]


def test_the_evidence_becomes_artifacts_and_the_raw_evidence_only_when_asked(
    make: MakeTracker, client: Any, tmp_path: Path
) -> None:
    plain = make().log(make_run(tmp_path / "one", TASKS), TASKS)
    raw = make(raw_evidence=True).log(make_run(tmp_path / "two", TASKS), TASKS)

    files = {
        "manifest.json",
        "summary.json",
        "results.jsonl",
        "checksums.sha256",
        "run.log",
        "config.yaml",
        "tables",
    }
    assert names(client, plain.run_id) == files
    assert names(client, raw.run_id) == files | {"raw"}
    assert len(client.list_artifacts(raw.run_id, "raw")) == 4
    copied = artifact(client, plain.run_id, "results.jsonl")
    assert copied.read_bytes() == (tmp_path / "one" / "results.jsonl").read_bytes()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_mlflow_reads_the_table_as_its_own(
    tracker: MlflowTracker, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This one call of the client asks the default store.
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracker.location.uri)
    run = tracker.log(make_run(tmp_path / "run", TASKS, wrong_ids={"t1"}, attempted=3), TASKS)

    tags = client.get_run(run.run_id).data.tags
    table = artifact(client, run.run_id, "tables/per_task.json")
    assert json.loads(tags["mlflow.loggedArtifacts"]) == [
        {"path": "tables/per_task.json", "type": "table"}
    ]
    frame = client.load_table(run.experiment_id, "tables/per_task.json", [run.run_id])
    assert list(frame["outcome"]) == ["correct", "wrong", "correct", "not attempted"]
    assert json.loads(table.read_text())["columns"] == list(frame.columns)


def test_a_run_that_is_exported_again_is_left_alone(
    make: MakeTracker, client: Any, tmp_path: Path
) -> None:
    directory = make_run(tmp_path / "run", TASKS)

    first = make().log(directory, TASKS)
    second = make().log(directory)

    assert (first.change, second.change) == (Change.CREATED, Change.NONE)
    assert first.run_id == second.run_id
    assert len(client.search_runs([first.experiment_id])) == 1


def test_runs_that_are_called_alike_in_two_sweeps_are_two_runs(
    tracker: MlflowTracker, client: Any, tmp_path: Path
) -> None:
    one = tracker.log(make_run(tmp_path / "a" / "0-run", TASKS, sweep="it's a"), TASKS)
    two = tracker.log(make_run(tmp_path / "b" / "0-run", TASKS, sweep='"b"'), TASKS)

    assert one.run_id != two.run_id
    assert [run.run_id for run in tracker.runs("it's a")] == [one.run_id]
    assert [run.run_id for run in tracker.runs('"b"')] == [two.run_id]


def test_a_killed_run_is_logged_as_far_as_it_came(
    tracker: MlflowTracker, client: Any, tmp_path: Path
) -> None:
    run = tracker.log(make_killed_run(tmp_path / "run", TASKS, attempted=2), TASKS)

    found = client.get_run(run.run_id)
    assert found.info.status == "KILLED"
    assert found.data.tags["jev.status"] == "running"
    # The manifest knows no end and no charge; the last record is the last sign of life.
    assert found.info.end_time == 1772359210000
    assert found.data.metrics == {}
    frame = json.loads(artifact(client, run.run_id, "tables/per_task.json").read_text())
    assert [row[1] for row in frame["data"]] == ["correct", "correct"] + ["not attempted"] * 2


def test_a_run_that_ended_after_it_was_exported_is_brought_up_to_date(
    tracker: MlflowTracker, client: Any, tmp_path: Path
) -> None:
    first = tracker.log(make_killed_run(tmp_path / "early" / "run", TASKS, attempted=2), TASKS)
    second = tracker.log(make_run(tmp_path / "late" / "run", TASKS), TASKS)

    assert second.change is Change.UPDATED
    assert second.run_id == first.run_id
    found = client.get_run(first.run_id)
    assert found.info.status == "FINISHED"
    assert found.data.metrics["accuracy"] == 1.0
    assert len(names(client, first.run_id)) == 7


def test_a_run_that_was_logged_by_half_is_completed(
    tracker: MlflowTracker, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = make_run(tmp_path / "run", TASKS)
    with monkeypatch.context() as patch:
        patch.setattr("jevexp.tracking.mlflow.writing._log_artifacts", lambda *_: 1 / 0)
        with pytest.raises(TrackingError, match="ZeroDivisionError"):
            tracker.log(directory, TASKS)

    run = tracker.log(directory, TASKS)

    assert run.change is Change.UPDATED
    assert client.get_run(run.run_id).info.status == "FINISHED"
    assert len(client.search_runs([run.experiment_id])) == 1


@pytest.mark.parametrize(
    ("status", "tracked"),
    [
        (RunStatus.INCOMPLETE, "FAILED"),
        (RunStatus.CRASHED, "FAILED"),
        (RunStatus.INTERRUPTED, "KILLED"),
    ],
)
def test_a_run_that_did_not_complete_does_not_look_finished(
    tracker: MlflowTracker, client: Any, tmp_path: Path, status: RunStatus, tracked: str
) -> None:
    directory = make_run(
        tmp_path / "run", TASKS, attempted=2, status=status, stop_reason="cap_reached"
    )

    found = client.get_run(tracker.log(directory, TASKS).run_id)

    assert found.info.status == tracked
    assert found.data.tags["jev.stop_reason"] == "cap_reached"
    assert found.data.metrics["coverage"] == 0.5


def test_nothing_that_is_null_is_logged(
    tracker: MlflowTracker, client: Any, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    directory = RunDirectory.create(path)
    directory.append(failure(TASKS[0]))
    directory.close()
    directory.write_summary(summarize(TASKS[:1], directory.records()))
    directory.write_manifest(manifest(path, status=RunStatus.INCOMPLETE, exit_status=1))
    directory.seal()

    data = client.get_run(tracker.log(directory, TASKS[:1]).run_id).data

    assert "ece" not in data.metrics
    assert "brier_mean" not in data.metrics
    assert data.metrics["accuracy"] == 0.0
    assert "backend.server.gguf" not in data.params
    assert "jev.sweep" not in data.tags


def test_families_and_settings_may_be_called_anything(
    tracker: MlflowTracker, client: Any, tmp_path: Path
) -> None:
    tasks = noul_tasks(4, families=["a[0]", "a(0)", "..", "x/y"])
    resolved = manifest(tmp_path).config.resolved | {
        "notes": {"a[0]": "1", "long": "x" * 7000, "empty": ""}
    }
    config = {"sha256": "12" * 32, "overrides": [], "resolved": resolved}

    data = client.get_run(
        tracker.log(make_run(tmp_path / "run", tasks, config=config), tasks).run_id
    ).data

    families = {name for name in data.metrics if name.startswith("family/")}
    assert len(families) == 8
    assert {"family/__/accuracy", "family/x_y/accuracy"} < families
    assert data.params["notes.a_0_"] == "1"
    assert "notes.long" not in data.params


def test_more_parameters_than_a_request_may_hold_are_all_logged(
    tracker: MlflowTracker, client: Any, tmp_path: Path
) -> None:
    resolved = manifest(tmp_path).config.resolved | {"many": {f"p{n}": n for n in range(350)}}
    config = {"sha256": "12" * 32, "overrides": [], "resolved": resolved}

    run = tracker.log(make_run(tmp_path / "run", TASKS, config=config), TASKS)

    params = client.get_run(run.run_id).data.params
    assert sum(name.startswith("many.") for name in params) == 350


def test_the_newest_runs_on_the_same_tasks_are_worth_comparing(
    tracker: MlflowTracker, tmp_path: Path
) -> None:
    other = {"name": "demo", "dataset_hash": "99" * 32, "n_tasks": 4, "files": [], "pin": {}}
    versions: list[dict[str, Any]] = [{}, {"dataset": other}, {}]
    for number, changed in enumerate(versions):
        started = f"2026-03-01T1{number}:00:00.000Z"
        tracker.log(make_run(tmp_path / f"run{number}", TASKS, started=started, **changed))

    assert [run.directory for run in tracker.runs()] == ["run0", "run2"]


def test_the_sweep_that_ran_last_is_worth_comparing(tracker: MlflowTracker, tmp_path: Path) -> None:
    for number, sweep in enumerate([None, "s", "s"]):
        started = f"2026-03-01T1{number}:00:00.000Z"
        tracker.log(make_run(tmp_path / f"run{number}", TASKS, started=started, sweep=sweep))

    assert [run.directory for run in tracker.runs()] == ["run1", "run2"]


def test_neither_environment_nor_directory_nor_terminal_is_touched(
    make: MakeTracker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    directory = make_run(tmp_path / "run", TASKS)
    before = {path: path.stat().st_mtime_ns for path in directory.path.rglob("*")}
    environment = dict(os.environ)

    make().log(directory, TASKS)

    assert dict(os.environ) == environment
    assert {path: path.stat().st_mtime_ns for path in directory.path.rglob("*")} == before
    assert capfd.readouterr() == ("", "")


def test_an_experiment_in_the_bin_is_named(
    tracker: MlflowTracker, make: MakeTracker, client: Any, tmp_path: Path
) -> None:
    directory = make_run(tmp_path / "run", TASKS)
    client.delete_experiment(tracker.log(directory).experiment_id)

    with pytest.raises(TrackingError, match="is deleted there; restore it, or set"):
        make().log(directory)


def test_a_damaged_directory_is_named_and_not_logged(
    tracker: MlflowTracker, tmp_path: Path
) -> None:
    directory = make_run(tmp_path / "run", TASKS)
    (directory.path / "results.jsonl").write_bytes(b"{}\n")

    with pytest.raises(TrackingError, match=r"run: cannot be read: ValueError: .*not a record"):
        tracker.log(directory)


def test_a_folder_that_is_no_run_is_named(tracker: MlflowTracker, tmp_path: Path) -> None:
    with pytest.raises(TrackingError, match="cannot be read: No such file"):
        tracker.log(RunDirectory(tmp_path))


def test_no_secret_of_the_environment_is_logged(
    tracker: MlflowTracker, outputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMA_KEY", "hunter2-in-the-environment")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "hunter2-of-mlflow")
    resolved = manifest(tmp_path).config.resolved
    resolved["backend"]["server"]["key_env"] = "LLAMA_KEY"
    config = {"sha256": "12" * 32, "overrides": [], "resolved": resolved}

    tracker.log(make_run(tmp_path / "run", TASKS, config=config), TASKS)

    stored = b"".join(path.read_bytes() for path in outputs.rglob("*") if path.is_file())
    assert b"LLAMA_KEY" in stored
    assert b"hunter2" not in stored


def test_what_was_observed_of_the_model_goes_before_what_is_declared(
    tracker: MlflowTracker, client: Any, tmp_path: Path
) -> None:
    def field(verdict: str, value: str) -> dict[str, Any]:
        found = [{"value": value, "source": "file header"}, {"value": "other", "source": "server"}]
        return {"verdict": verdict, "declared": None, "observed": found}

    identity = {
        "verdict": "contradicted",
        "fields": {
            "weights.sha256": field("contradicted", "77" * 32),
            "quantization.ftype": field("observed_only", "Q2_K"),
        },
        "findings": [{"level": "warning", "code": "c", "field": "alias", "message": "says q4km"}],
    }
    fingerprint = {"version": 1, "value": "f00d", "inputs": {}}

    run = tracker.log(
        make_run(tmp_path / "run", TASKS, identity=identity, fingerprint=fingerprint), TASKS
    )

    tags = client.get_run(run.run_id).data.tags
    assert tags["jev.identity"] == "contradicted"
    assert tags["jev.fingerprint"] == "f00d"
    assert tags["jev.weights_sha256"] == "77" * 32
    assert tags["jev.ftype"] == "Q2_K"
    assert "| Identity | **contradicted** |" in tags["mlflow.note.content"]
    assert "- contradicted: `weights.sha256`" in tags["mlflow.note.content"]
    assert "- warning: says q4km" in tags["mlflow.note.content"]
