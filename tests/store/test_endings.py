"""However a run ends, its directory tells the truth about it."""

import json
import os
import signal
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from jevexp.core.decision import Decision, Request
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.run import planning, running
from jevexp.settings import Settings
from jevexp.store import Manifest, RunDirectory, RunStatus
from tests.support.compose import compose
from tests.support.in_process import Silent
from tests.support.provider import Provider
from tests.support.tasks import answer, failure

SECRET = "sk-" + "secret"


@cache
def settings() -> Settings:
    """Three demo tasks, and money for two."""
    return compose("dataset=demo", "caps.limit=3", "tracking=none", "caps.cap_usd=0.05")


class Run:
    """A run of three tasks, and what it left behind."""

    def __init__(self, folder: Path, backend: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(planning, "make_backend", lambda *arguments: backend)
        self.path = folder / "run"
        self.tracked: list[Path] = []
        self.outcome = running.run(
            planning.plan(settings()),
            planning.Launch(self.path, overrides=("a=b",)),
            Silent(),
            self._track,
        )

    def _track(self, directory: RunDirectory, tasks: Sequence[Task]) -> None:
        # Complete before anybody hears of it.
        assert (directory.path / "checksums.sha256").is_file()
        self.tracked.append(directory.path)

    @property
    def manifest(self) -> Manifest:
        return RunDirectory(self.path).read_manifest()

    @property
    def records(self) -> list[Record]:
        return list(RunDirectory(self.path).records())

    @property
    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / "summary.json").read_bytes())
        return found

    def everything(self) -> bytes:
        return b"".join(path.read_bytes() for path in self.path.rglob("*") if path.is_file())


def right(request: Request) -> Decision:
    """An answer that is valid for any question."""
    options = request.question.options
    usage = {"input_tokens": 1, "output_tokens": 1}
    return answer(dict.fromkeys(options, 1 / len(options)), usage=usage)


def check_consistent(run: Run) -> None:
    """What holds after every ending that we live to see."""
    manifest = run.manifest
    records = run.records
    assert manifest == run.outcome.manifest
    assert run.summary == run.outcome.summary.plain()
    assert manifest.finished is not None
    assert manifest.finished >= manifest.started
    assert manifest.counts.requested == 3
    assert manifest.counts.attempted == len(records) == run.summary["n_attempted"]
    assert manifest.counts.answered == sum(record.ok for record in records)
    assert manifest.counts.valid == sum(record.valid for record in records)
    assert manifest.model.resolved == sorted({record.model for record in records if record.ok})
    assert manifest.cost_basis == sorted({record.cost_basis for record in records})
    assert manifest.ledger.charged_usd == run.summary["ledger_charged_usd"]
    assert len(list((run.path / "raw").iterdir())) == len(records)
    assert (run.path / "checksums.sha256").is_file()


def test_the_cap_ends_a_run_as_incomplete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path, Provider(right), monkeypatch)
    check_consistent(run)
    manifest = run.manifest
    assert (manifest.status, manifest.exit_status) == (RunStatus.INCOMPLETE, 1)
    assert manifest.stop_reason == "cap_reached"
    assert manifest.counts.attempted == 2
    assert manifest.ledger.charged_by_run_usd == manifest.ledger.charged_usd == 0.04
    assert manifest.error is None
    assert manifest.config.overrides == ["a=b"]
    assert manifest.model.session == "m-1"
    assert manifest.model.resolved == ["m-1"]
    assert run.tracked == [run.path]


def test_failures_make_a_run_incomplete_and_their_reasons_stay_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, Provider(RuntimeError(SECRET), failure("timeout")), monkeypatch)
    check_consistent(run)
    assert run.manifest.status is RunStatus.INCOMPLETE
    assert [record.error for record in run.records] == ["RuntimeError", "timeout"]
    assert SECRET.encode() not in run.everything()


@pytest.mark.parametrize(
    ("signals", "attempted"),
    [
        ([signal.SIGINT], 2),
        ([signal.SIGINT, signal.SIGINT], 1),
        ([signal.SIGTERM], 1),
        ([signal.SIGHUP], 1),
    ],
    ids=["SIGINT", "SIGINT twice", "SIGTERM", "SIGHUP"],
)
def test_a_signal_ends_a_run_as_interrupted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    signals: Sequence[signal.Signals],
    attempted: int,
) -> None:
    def interrupted(request: Request) -> Decision:
        for signum in signals:
            os.kill(os.getpid(), signum)
        return right(request)

    run = Run(tmp_path, Provider(right, interrupted), monkeypatch)
    check_consistent(run)
    manifest = run.manifest
    assert (manifest.status, manifest.exit_status) == (RunStatus.INTERRUPTED, 128 + signals[-1])
    assert manifest.error == "Interrupted"
    assert manifest.counts.attempted == attempted
    # What was in flight may have cost its money.
    assert manifest.ledger.charged_by_run_usd == 0.04
    # Whoever sends a second one does not want to wait for a tracker.
    assert run.tracked == ([run.path] if len(signals) == 1 else [])


def test_a_provider_that_cannot_be_used_ends_a_run_as_refused_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Absent(Provider):
        def open(self, log_directory: Path) -> "Absent":
            raise InputError("no server at http://127.0.0.1:8080")

    run = Run(tmp_path, Absent(right), monkeypatch)
    check_consistent(run)
    manifest = run.manifest
    assert (manifest.status, manifest.exit_status) == (RunStatus.REFUSED, 2)
    assert manifest.message == "no server at http://127.0.0.1:8080"
    assert manifest.counts.attempted == 0
    assert run.tracked == []


@pytest.mark.parametrize("step", ["open", "describe", "reserve_estimate"])
def test_an_error_of_anybodys_ends_a_run_as_crashed_and_is_not_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def crash(*arguments: object) -> None:
        raise RuntimeError(f"bad key {SECRET}")

    backend = Provider(right)
    setattr(backend, step, crash)
    run = Run(tmp_path, backend, monkeypatch)
    check_consistent(run)
    manifest = run.manifest
    assert (manifest.status, manifest.exit_status) == (RunStatus.CRASHED, 1)
    assert manifest.error == "RuntimeError"
    assert manifest.message is None
    assert "RuntimeError" in (run.path / "run.log").read_text()
    assert SECRET.encode() not in run.everything()


def test_a_full_disk_ends_a_run_as_crashed_with_the_records_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = RunDirectory.append

    def full(directory: RunDirectory, record: Record) -> None:
        if list(directory.records()):
            raise OSError(28, "No space left on device")
        append(directory, record)

    monkeypatch.setattr(RunDirectory, "append", full)
    run = Run(tmp_path, Provider(right), monkeypatch)
    assert run.manifest.status is RunStatus.CRASHED
    assert run.manifest.error == "OSError"
    assert run.manifest.counts.attempted == len(run.records) == 1
    assert len(list((run.path / "raw").iterdir())) == 2
    assert "No space left on device" in (run.path / "run.log").read_text()


def test_while_a_run_goes_on_its_manifest_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Manifest] = []

    def look(request: Request) -> Decision:
        seen.append(RunDirectory(tmp_path / "run").read_manifest())
        return right(request)

    run = Run(tmp_path, Provider(look), monkeypatch)
    assert {manifest.status for manifest in seen} == {RunStatus.RUNNING}
    assert seen[0].exit_status is None
    assert seen[0].finished is None
    assert seen[0].started == run.manifest.started
    assert seen[0].config == run.manifest.config


def test_a_manifest_is_the_same_after_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, Provider(right), monkeypatch)
    directory = RunDirectory(run.path)
    before = (run.path / "manifest.json").read_bytes()
    directory.write_manifest(directory.read_manifest())
    assert (run.path / "manifest.json").read_bytes() == before


def test_a_field_that_a_newer_version_added_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, Provider(right), monkeypatch)
    path = run.path / "manifest.json"
    newer = json.loads(path.read_bytes())
    newer["added"] = {"later": 1}
    newer["ledger"]["currency"] = "USD"
    path.write_text(json.dumps(newer))
    directory = RunDirectory(run.path)
    directory.write_manifest(directory.read_manifest())
    assert json.loads(path.read_bytes()) == newer


def test_the_manifest_names_dataset_config_and_software(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, Provider(right), monkeypatch)
    manifest = run.manifest
    assert manifest.config.sha256 == settings().config_hash
    assert manifest.config.resolved == settings().resolved()
    assert manifest.dataset.name == "demo"
    assert manifest.dataset.dataset_hash == settings().dataset.dataset_hash
    assert manifest.dataset.n_tasks == 48
    assert manifest.model.requested == "fake"
    assert manifest.harness.commit == "bb05a335bc809e61b20c0f745d25499a82b326fc"
    assert manifest.software.packages["pydantic"]
    assert manifest.run == "run"
    assert manifest.ledger.path == str(run.path / "ledger.jsonl")
    assert manifest.ledger.shared is False
