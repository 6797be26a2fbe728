"""Runs that an earlier version left behind are read, proven, compared, tracked and gone on with.

`tests/fixtures/before_redesign` says how its runs were made.
"""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jevexp.cli.main import main
from jevexp.core.json import dumps
from jevexp.store import RunDirectory, RunStatus
from jevexp.store.manifest import Program
from jevexp.verification import State, verify_run
from tests.support.scripted_llama import Answer, scripted_llama

FIXTURE = Path(__file__).parents[1] / "fixtures" / "before_redesign"
INCOMPLETE, KILLED = Path("outputs/day/incomplete"), Path("outputs/day/killed")
SWEEP = Path("outputs/sweeps/day/sweep")
POOR, PERFECT = (SWEEP / f"{number}-kitchen-fake-fake" for number in range(2))
BEFORE_THE_KILL = ["boil-1", "boil-2", "route-1", "route-2", "urgent-1"]


@pytest.fixture
def earlier(workplace: Path) -> Path:
    """A working directory with the earlier runs in its outputs, and their tasks."""
    shutil.copytree(FIXTURE, workplace, dirs_exist_ok=True)
    return workplace


def printed_json(capsys: pytest.CaptureFixture[str], *command: str) -> Any:
    assert main(command) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("earlier")
def test_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0

    said = capsys.readouterr().out
    rows = {words[0]: words[1:] for line in said.splitlines() if (words := line.split())}
    assert rows["day/incomplete"][:4] == ["incomplete", "8/11", "0.556", "0.361"]
    assert rows["sweeps/day/sweep/0-kitchen-fake-fake"][:4] == ["complete", "6/6", "0.167", "1.136"]
    assert rows["sweeps/day/sweep/1-kitchen-fake-fake"][:4] == ["complete", "6/6", "1.000", "0.101"]
    assert "day/killed" in rows
    assert "4 of 4 runs in outputs" in said


@pytest.mark.usefixtures("earlier")
@pytest.mark.parametrize(
    ("run", "state"),
    [
        (INCOMPLETE, State.VERIFIED),
        (POOR, State.VERIFIED),
        (PERFECT, State.VERIFIED),
        (KILLED, State.INCOMPLETE),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_they_are_verified(run: Path, state: State) -> None:
    report = verify_run(run)

    assert report.state is state, report
    skipped = {check.name for check in report.checks if check.reason is not None}
    # What a killed process never wrote.
    assert skipped == ({"files", "summary", "numbers"} if run is KILLED else set())


@pytest.mark.usefixtures("earlier")
def test_their_numbers_are_those_of_their_answers(capsys: pytest.CaptureFixture[str]) -> None:
    report = printed_json(capsys, "report", str(INCOMPLETE), "--draws", "100", "--json")

    (run,) = report["runs"]
    summary = RunDirectory(INCOMPLETE).read_summary()
    assert summary is not None
    # By hand from answers.json: of nine tasks with a truth five are right. Seven of those have a
    # valid distribution; that of urgent-2 sums to 0.99, and is rescaled.
    rescaled = [0.5 / 0.99, 0.3 / 0.99, 0.19 / 0.99]
    urgent = (rescaled[0] - 1) ** 2 + rescaled[1] ** 2 + rescaled[2] ** 2
    brier_mean = (0.02 + 0.72 + 0.035 + 0.38 + 0.14 + urgent + 0.86) / 7
    ordinal_mae = (0.4 + (0.3 + 2 * 0.19) / 0.99) / 2
    assert summary.accuracy == pytest.approx(5 / 9)
    assert summary.brier_mean == pytest.approx(brier_mean)
    assert summary.ordinal_mae == pytest.approx(ordinal_mae)
    assert (summary.n_attempted, summary.n_scorable, summary.n_valid) == (11, 9, 8)
    assert (run["scored"], run["correct"], run["valid"]) == (9, 5, 8)
    page = (INCOMPLETE / "report.html").read_text()
    assert f"{brier_mean:.3f}" in page
    assert f"{ordinal_mae:.3f}" in page


@pytest.mark.usefixtures("earlier")
def test_they_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed_json(capsys, "compare", str(SWEEP), "--draws", "100", "--json")

    (pair,) = found["pairs"]
    assert pair["paired"] == 6
    differences = {metric["name"]: metric["delta"] for metric in pair["metrics"]}
    assert differences["accuracy"] == pytest.approx(5 / 6)
    # As that version computed them.
    assert differences["brier_mean"] == pytest.approx(0.10072771412809584 - 1.1358504431799676)
    assert differences["ordinal_mae"] == pytest.approx(0.5527632148344488 - 1.7194768898405322)


@pytest.mark.usefixtures("earlier")
def test_they_are_tracked(capsys: pytest.CaptureFixture[str]) -> None:
    from mlflow import MlflowClient

    assert main(["export", str(INCOMPLETE), str(SWEEP)]) == 0

    said = capsys.readouterr().out
    assert f"logged      {INCOMPLETE} (incomplete)" in said
    assert f"logged      comparison of {SWEEP}" in said
    client = MlflowClient("sqlite:///outputs/mlflow.db")
    experiment = client.get_experiment_by_name("jevexp")
    assert experiment is not None
    runs = {run.data.tags["jev.run"]: run for run in client.search_runs([experiment.experiment_id])}
    assert runs.keys() == {"incomplete", POOR.name, PERFECT.name, "sweep"}
    accuracies = [runs[run.name].data.metrics["accuracy"] for run in (INCOMPLETE, POOR, PERFECT)]
    assert accuracies == pytest.approx([5 / 9, 1 / 6, 1])
    assert runs["incomplete"].data.metrics["brier_mean"] == pytest.approx(0.3612336204760447)
    assert runs["incomplete"].data.tags["jev.status"] == "incomplete"


@pytest.mark.usefixtures("earlier")
def test_one_that_was_killed_is_gone_on_with() -> None:
    kept = (KILLED / "results.jsonl").read_bytes()

    assert main([f"resume={KILLED}", "hydra.run.dir=again"]) == 0

    run = RunDirectory(Path("again"))
    manifest = run.read_manifest()
    assert manifest.status is RunStatus.COMPLETE
    assert manifest.resumed is not None
    assert manifest.resumed.adopted == BEFORE_THE_KILL
    assert manifest.resumed.recovered == ["urgent-1"]
    assert manifest.resumed.charged_usd == pytest.approx(5 * 0.02)
    assert manifest.software.earlier == [
        Program(
            run="killed",
            jevexp="0.1.0",
            git_commit="33fba305deb710ed280ba77371f72169913716e2",
            git_dirty=False,
        )
    ]
    assert (run.path / "results.jsonl").read_bytes().startswith(kept)
    assert verify_run(run.path).state is State.VERIFIED
    summary = run.read_summary()
    assert summary is not None
    assert (summary.n_correct, summary.n_scorable, summary.n_valid) == (7, 9, 11)


def test_a_run_from_before_routes_goes_on_by_token(workplace: Path) -> None:
    with scripted_llama() as server:
        server.answers["/completion"] = lambda body: Answer(status=500)
        address = f"backend.server.base_url={server.url}"
        command = ["dataset=demo", "caps.limit=4", "tracking=none", "backend=llama_cpp", address]
        command += ["model=unclaimed", "model.alias=m", "hydra.run.dir=before"]
        assert main(command) == 1
        before = RunDirectory(workplace / "before")
        fields = json.loads((before.path / "manifest.json").read_text())
        config = fields["config"]
        del config["resolved"]["backend"]["isolation"]
        del config["resolved"]["backend"]["readout"]["route"]
        canonical = dumps(config["resolved"], sort_keys=True).encode()
        config["sha256"] = hashlib.sha256(canonical).hexdigest()
        (before.path / "manifest.json").write_text(json.dumps(fields))
        (before.path / "checksums.sha256").unlink()

        server.answers.clear()
        assert main(["resume=before", address, "hydra.run.dir=after"]) == 0

    manifest = RunDirectory(workplace / "after").read_manifest()
    assert manifest.fingerprint == before.read_manifest().fingerprint
    assert manifest.backend.description["readout"] == fields["backend"]["description"]["readout"]
    assert "route" not in manifest.backend.description["readout"]
    assert verify_run(workplace / "after").state is State.VERIFIED
