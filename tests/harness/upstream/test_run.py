"""A whole run with harness=upstream; a stand-in takes the place of the pinned package."""

import json
import subprocess
from pathlib import Path

import pytest

from jevexp.settings import PINNED_COMMIT
from tests.harness.test_conformance import approx
from tests.harness.upstream import both
from tests.support.cli import jevexp_process
from tests.support.tasks import task
from tests.support.upstream import from_git, install


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    site = install(folder / "site", from_git(PINNED_COMMIT))
    return both.run_both(
        folder,
        "dataset=demo",
        "backend.mode=noise",
        "caps.limit=12",
        PYTHONPATH=str(site),
    )


def test_both_harnesses_leave_the_same_evidence(runs: list[Path]) -> None:
    native, upstream = runs
    assert both.records(upstream) == approx(both.records(native))
    assert both.summary(upstream) == approx(both.summary(native))
    assert both.raw(upstream) == both.raw(native)
    assert both.ledger(upstream) == approx(both.ledger(native))


def test_the_manifest_says_which_harness_it_was(runs: list[Path]) -> None:
    native, upstream = map(both.read_manifest, runs)
    assert native["harness"] == {"name": "native", "commit": PINNED_COMMIT}
    assert upstream["harness"] == {
        "name": "upstream",
        "commit": PINNED_COMMIT,
        "origin": "installed package",
    }
    for name in ("counts", "status", "cost_basis", "fingerprint"):
        assert upstream[name] == native[name]
    for name in ("charged_by_run_usd", "charged_usd"):
        assert upstream["ledger"][name] == approx(native["ledger"][name])
    assert upstream["ledger"]["charged_usd"] > 0


def test_everything_it_wrote_is_under_the_checksums(runs: list[Path]) -> None:
    checksums = (runs[1] / "checksums.sha256").read_text()
    assert "upstream/results.jsonl" in checksums
    done = subprocess.run(
        ["sha256sum", "--check", "--quiet", "checksums.sha256"], cwd=runs[1], check=False
    )
    assert done.returncode == 0


def test_the_unrelated_package_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    site = install(tmp_path / "site", None, version="0.1.0")
    finished = jevexp_process(
        "dataset=demo", "harness=upstream", "tracking=none", cwd=tmp_path, PYTHONPATH=str(site)
    )
    assert finished.status == 2
    assert "found jevbench 0.1.0 from a package index" in finished.err
    assert finished.err.strip().endswith("pip install 'jevexp[upstream]'")
    assert not (tmp_path / "outputs").exists()


def test_a_task_that_it_refuses_is_named_before_anything_is_written(tmp_path: Path) -> None:
    site = install(tmp_path / "site", from_git(PINNED_COMMIT))
    refused = task("noul", id="refused")
    (tmp_path / "tasks.jsonl").write_text(json.dumps(refused.canonical()))
    finished = jevexp_process(
        "dataset=local",
        "dataset.path=tasks.jsonl",
        "harness=upstream",
        "tracking=none",
        cwd=tmp_path,
        PYTHONPATH=str(site),
    )
    assert finished.status == 2
    assert "task 'refused': the pinned harness refuses it: refused for a test" in finished.err
    assert not (tmp_path / "outputs").exists()
