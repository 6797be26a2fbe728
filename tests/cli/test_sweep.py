"""Sweeps: own directories, one ledger, one table, one exit status."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import jevexp, jevexp_process, start

SWEEP = ("-m", "dataset=demo", "tracking=none", "backend.mode=noise")


def manifests(sweep: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(sweep.glob("*/manifest.json"))]


def own_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def only_sweep(workplace: Path) -> Path:
    (sweep,) = workplace.glob("outputs/sweeps/20*/*")
    return sweep


@pytest.mark.parametrize(
    "launcher",
    [
        [],
        ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"],
    ],
    ids=["basic", "joblib"],
)
def test_a_sweep_compares_its_runs_and_shares_one_ledger(
    launcher: list[str], workplace: Path
) -> None:
    command = jevexp_process if launcher else jevexp
    done = command(*SWEEP, "backend.accuracy=0.6,0.8,1.0", *launcher, cwd=workplace)

    assert done.status == 0, done.err
    sweep = only_sweep(workplace)
    found = manifests(sweep)
    assert [one["status"] for one in found] == ["complete"] * 3
    assert {one["sweep"] for one in found} == {sweep.name}
    assert {one["ledger"]["path"] for one in found} == {str(sweep / "ledger.jsonl")}
    rows = [json.loads(line) for line in (sweep / "ledger.jsonl").read_text().splitlines()]
    assert sum(row["event"] == "settle" for row in rows) == 3 * 48
    own = [own_rows(path) for path in sorted(sweep.glob("*/ledger.jsonl"))]
    assert [[row["event"] for row in part].count("settle") for part in own] == [48] * 3
    assert all(part[0]["event"] == "cap" for part in own)
    assert sorted(map(str, (row for part in own for row in part[1:]))) == sorted(map(str, rows[1:]))
    assert "3 of 3 runs complete" in done.out
    assert "backend.accuracy" in done.out
    accuracies = [
        json.loads(p.read_text())["accuracy"] for p in sorted(sweep.glob("*/summary.json"))
    ]
    assert accuracies[0] < accuracies[2] == 1.0


# MLflow's database layer warns about what it uses itself.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_parallel_runs_share_a_tracking_database_that_none_of_them_found(workplace: Path) -> None:
    done = jevexp_process(
        "-m",
        "dataset=demo",
        "caps=smoke",
        "backend.seed=1,2",
        "hydra/launcher=joblib",
        "hydra.launcher.n_jobs=2",
        cwd=workplace,
    )

    assert done.status == 0, done.out + done.err
    assert "warning" not in done.out
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{workplace}/outputs/mlflow.db")
    found = client.search_runs([client.get_experiment_by_name("jevexp").experiment_id])
    assert [run.info.status for run in found] == ["FINISHED"] * 3
    runs = [run for run in found if run.data.tags["jev.kind"] == "run"]
    assert len(runs) == 2
    assert all("95 % interval" in run.data.tags["mlflow.note.content"] for run in runs)
    assert {run.data.params["backend.seed"] for run in runs} == {"1", "2"}
    assert {run.data.tags["jev.sweep"] for run in runs} == {only_sweep(workplace).name}
    assert all(run.info.run_id in done.out for run in runs)
    # The launching process compares them: one run of its own, whose page is named.
    (compared,) = (run for run in found if run.data.tags["jev.kind"] == "comparison")
    assert compared.data.tags["jev.sweep"] == only_sweep(workplace).name
    assert all(run.info.run_id in compared.data.tags["mlflow.note.content"] for run in runs)
    report = next(line for line in done.out.splitlines() if line.startswith("report"))
    assert compared.info.run_id in report


def test_a_failing_run_does_not_stop_the_others(workplace: Path) -> None:
    (workplace / "failing.json").write_text(json.dumps([{"error": "timeout"}] * 3))
    own = workplace / "mine/backend"
    own.mkdir(parents=True)
    (own / "failing.yaml").write_text(
        "defaults:\n  - fake\nname: failing\nmode: script\nscript: failing.json\n"
    )
    done = jevexp(
        "-m",
        "dataset=demo",
        "tracking=none",
        "--config-dir",
        "mine",
        "backend=failing,fake",
        cwd=workplace,
    )

    assert done.status == 1
    assert [one["status"] for one in manifests(only_sweep(workplace))] == ["incomplete", "complete"]
    assert "1 of 2 runs complete" in done.out
    assert done.out.count("  3 × timeout\n") == 1


def test_a_refused_provider_is_one_failed_run_of_the_sweep(workplace: Path) -> None:
    done = jevexp(
        "-m",
        "dataset=demo",
        "tracking=none",
        "backend=llama_cpp",
        "backend.server.base_url=http://127.0.0.1:9,http://127.0.0.1:10",
        cwd=workplace,
    )

    assert done.status == 1
    found = manifests(only_sweep(workplace))
    assert [one["status"] for one in found] == ["refused", "refused"]
    assert "http://127.0.0.1:9" in found[0]["message"]
    assert "0 of 2 runs complete" in done.out


def test_an_interrupt_ends_the_whole_sweep(workplace: Path) -> None:
    process = start(*SWEEP, "backend.latency_s=0.2", "backend.seed=1,2,3", cwd=workplace)
    deadline = time.monotonic() + 30
    while not list(workplace.glob("outputs/sweeps/20*/*/0-*/raw/*")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)

    assert process.returncode == 130
    assert [one["status"] for one in manifests(only_sweep(workplace))] == ["interrupted"]
    assert "0 of 3 runs complete" in out


def test_two_sweeps_in_the_same_second_have_two_directories(workplace: Path) -> None:
    both = [start(*SWEEP, "backend.seed=1,2", "caps=smoke", cwd=workplace) for _ in range(2)]
    for process in both:
        process.communicate(timeout=60)

    assert [process.returncode for process in both] == [0, 0]
    sweeps = list(workplace.glob("outputs/sweeps/20*/*"))
    assert len(sweeps) == 2
    assert all(len(manifests(sweep)) == 2 for sweep in sweeps)


def test_an_experiment_may_bring_its_own_sweep(workplace: Path) -> None:
    own = workplace / "mine/experiment"
    own.mkdir(parents=True)
    (own / "seeds.yaml").write_text(
        "# @package _global_\n"
        "defaults:\n"
        "  - override /dataset: demo\n"
        "  - override /tracking: none\n"
        "hydra:\n"
        "  sweeper:\n"
        "    params:\n"
        "      backend.seed: 1,2\n"
    )

    done = jevexp("-m", "--config-dir", "mine", "experiment=seeds", "caps=smoke", cwd=workplace)

    assert done.status == 0, done.err
    assert "2 of 2 runs complete" in done.out
