"""A real MLflow server that keeps its artifacts itself: written to, read back, away and back."""

import json
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jevexp.cli.verbs.compare import main as compare
from jevexp.cli.verbs.export import main as export
from jevexp.tracking import Change, TrackedRun, TrackingError, make_tracker
from jevexp.tracking.mlflow import MlflowTracker
from jevexp.tracking.mlflow.environment import mlflow_environment
from tests.support.cli import jevexp, only_run
from tests.support.guard import guarded
from tests.support.mlflow_server import client_of, mlflow_server
from tests.support.ports import free_port
from tests.support.runs import make_run, noul_tasks, tracking

pytestmark = pytest.mark.live

TASKS = noul_tasks(4)
SECRET = "hunter2-and-more"
FILES = {
    "manifest.json",
    "summary.json",
    "results.jsonl",
    "checksums.sha256",
    "run.log",
    "config.yaml",
    "tables",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    with mlflow_server(folder) as uri:
        yield uri


def logged(uri: str, run_id: str) -> tuple[Any, dict[str, bytes]]:
    """A run as the server has it, and the bytes of all its artifacts by path."""
    with mlflow_environment(30):
        client = client_of(uri)
        files = {}
        folders = [""]
        for place in folders:
            for entry in client.list_artifacts(run_id, place or None):
                if entry.is_dir:
                    folders.append(entry.path)
                else:
                    files[entry.path] = Path(
                        client.download_artifacts(run_id, entry.path)
                    ).read_bytes()
        return client.get_run(run_id), files


def test_everything_of_a_run_is_there_and_reads_back(server: str, tmp_path: Path) -> None:
    directory = make_run(tmp_path / "run", TASKS, wrong_ids={"t1"})
    tracker = MlflowTracker(tracking(uri=server, raw_evidence=True, traces=True), tmp_path)

    run = tracker.log(directory, TASKS)

    assert run.change is Change.CREATED
    found, files = logged(server, run.run_id)
    assert found.info.status == "FINISHED"
    assert found.info.artifact_uri.startswith("mlflow-artifacts:")
    assert found.data.metrics["accuracy"] == 0.75
    assert found.data.metrics["family/routing/accuracy"] == 0.5
    assert found.data.params["backend.server.context"] == "4096"
    assert found.inputs.dataset_inputs[0].dataset.name == "original@bb05a33"
    for name in FILES - {"config.yaml", "tables"}:
        assert files[name] == (directory.path / name).read_bytes()
    assert {f"raw/{path.name}" for path in directory.raw.iterdir()} < set(files)
    table = json.loads(files["tables/per_task.json"])
    assert [row[1] for row in table["data"]] == ["correct", "wrong", "correct", "correct"]
    with mlflow_environment(30):
        traces = client_of(server).search_traces(locations=[run.experiment_id], run_id=run.run_id)
    assert {trace.data.spans[0].inputs["task_id"] for trace in traces} == {t.id for t in TASKS}
    assert {len(trace.info.assessments) for trace in traces} == {4}
    lines = tracker.addresses([run])
    assert lines[0].startswith(f"run       {server}/#/experiments/")
    again = tracker.log(directory, TASKS)
    assert again.change is Change.NONE


def test_runs_that_only_the_server_has_are_compared(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tracker = make_tracker(tracking(uri=server, experiment="compared"), tmp_path)
    runs: list[TrackedRun | None] = []
    for number, wrong in enumerate([set(), {"t0", "t2"}]):
        started = f"2026-03-01T1{number}:00:00.000Z"
        path = tmp_path / f"{number}-run"
        runs.append(tracker.log(make_run(path, TASKS, wrong_ids=wrong, started=started, sweep="s")))
        shutil.rmtree(path)
    there = ["--uri", server, "--experiment", "compared", "--json"]

    assert compare(["--where", "tags.jev.sweep = 's'", *there]) == 0

    found = json.loads(capsys.readouterr().out)["runs"]
    assert [run["correct"] for run in found] == [4, 2]
    assert [run["path"] for run in found] == [f"mlflow:{run.run_id}" for run in runs if run]


def test_a_sweep_is_exported_with_its_comparison(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = tmp_path / "sweep"
    for number in range(2):
        make_run(sweep / f"{number}-run", TASKS, sweep="sweep")

    for word in ("logged", "unchanged"):
        assert export([str(sweep), "--uri", server, "--experiment", "swept"]) == 0
        said = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in said[:3]] == [word] * 3

    report = next(line for line in said if line.startswith("report"))
    run_id = report.partition("/runs/")[2].partition("/artifacts/report.html")[0]
    found, files = logged(server, run_id)
    assert found.data.tags["jev.kind"] == "comparison"
    assert len(json.loads(files["comparison.json"])["runs"]) == 2


@pytest.mark.parametrize(
    ("named", "sent"),
    [
        ({"token_env": "JEV_SECRET"}, f"Bearer {SECRET}"),
        (
            {"username_env": "JEV_USER", "password_env": "JEV_SECRET"},
            "Basic bWU6aHVudGVyMi1hbmQtbW9yZQ==",
        ),
    ],
    ids=["token", "user and password"],
)
def test_a_server_with_a_login_gets_everything_and_the_secret_stays(
    named: dict[str, str],
    sent: str,
    server: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("JEV_SECRET", SECRET)
    monkeypatch.setenv("JEV_USER", "me")
    settings = {"experiment": next(iter(named)), "traces": True, **named}
    with guarded(server, sent) as guard:
        resolved = tracking(uri=guard.uri, **settings)
        directory = make_run(tmp_path / "run", TASKS)
        run = make_tracker(resolved, tmp_path).log(directory, TASKS)
        assert run is not None
        assert guard.refused == []
        # Artifacts took the same way as everything else.
        assert guard.passed.count("PUT") == len(FILES)
        found, files = logged(server, run.run_id)
        assert found.info.status == "FINISHED"

        monkeypatch.setenv("JEV_SECRET", f"not-{SECRET}")
        with pytest.raises(TrackingError, match="401") as refused:
            make_tracker(resolved, tmp_path).log(make_run(tmp_path / "other", TASKS), TASKS)

    assert SECRET not in str(refused.value)
    written = [*folder.rglob("*"), *tmp_path.rglob("*")]
    for path in filter(Path.is_file, written):
        data = path.read_bytes()
        assert SECRET.encode() not in data, path
        assert sent.split()[1].encode() not in data, path
    assert SECRET not in "".join(capfd.readouterr())
    assert not any(SECRET.encode() in data for data in files.values())


def test_a_run_ends_well_without_its_server_and_is_exported_later(
    server: str, workplace: Path
) -> None:
    dead = f"http://127.0.0.1:{free_port()}"

    done = jevexp("dataset=demo", "caps.limit=3", f"tracking.uri={dead}", cwd=workplace)

    assert done.status == 0, done.err
    run = only_run(workplace / "outputs")
    assert f"not tracked: {dead}: cannot be reached" in done.out
    command = f"log it later with: jevexp export {run.relative_to(workplace)}"
    assert command in done.out.replace(f"{workplace}/", "")
    assert json.loads((run / "manifest.json").read_text())["status"] == "complete"

    later = jevexp(
        "export", str(run), "--uri", server, "--experiment", "later", "--traces", cwd=workplace
    )
    assert later.status == 0, later.out
    assert later.out.startswith(f"logged      {run}\n")
    assert f"run       {server}/#/experiments/" in later.out


def test_a_run_waits_only_so_long_for_a_server_that_hangs(workplace: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        uri = f"http://127.0.0.1:{listener.getsockname()[1]}"
        done = jevexp(
            "dataset=demo",
            "caps.limit=3",
            f"tracking.uri={uri}",
            "tracking.timeout_s=1",
            cwd=workplace,
        )

    assert done.status == 0, done.err
    assert f"not tracked: {uri}: no answer within 1 s" in done.out
    assert only_run(workplace / "outputs").joinpath("checksums.sha256").is_file()


def test_a_server_that_goes_away_costs_one_line_and_one_command(
    server: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    first, second = (make_run(tmp_path / name, TASKS) for name in ("first", "second"))
    settings = tracking(uri=f"http://127.0.0.1:{port}", experiment="away")

    with guarded(server, None, port=port):
        tracker = make_tracker(settings, tmp_path)
        tracker.log(first, TASKS)

    # The server is gone in the middle of a session: one line, at once.
    started = time.monotonic()
    with pytest.raises(TrackingError, match=r"cannot be reached: .*refused"):
        tracker.log(second, TASKS)
    assert time.monotonic() - started < 10
    assert capfd.readouterr() == ("", "")

    with guarded(server, None, port=port):
        later = make_tracker(settings, tmp_path)
        changes = [later.log(directory, TASKS).change for directory in (first, second)]
    assert changes == [Change.NONE, Change.CREATED]


def test_the_links_of_a_server_need_no_start(server: str, workplace: Path) -> None:
    done = jevexp("ui", "--uri", server, "--experiment", "empty", cwd=workplace)

    assert (done.status, done.out.strip()) == (0, f"no runs yet: {server}")
