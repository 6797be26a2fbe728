"""What is not resumed, and the one line that says why; nothing is written then."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jevexp.errors import InputError
from jevexp.store import RunDirectory, RunStatus
from tests.run.resume.sessions import (
    Crash,
    Desk,
    Killed,
    Named,
    Session,
    invalid,
    order,
    right,
    said,
    settings,
)


@pytest.fixture
def first(desk: Desk) -> Session:
    """A run that ended after two of its tasks, never sealed, as a kill leaves it."""
    return desk.run(right, right, Killed())


def refused(desk: Desk, of: Session, match: str) -> None:
    with pytest.raises(InputError, match=match) as caught:
        desk.resume(of)
    assert "\n" not in str(caught.value)
    assert not (desk.folder / f"run-{len(desk.sessions)}").exists()


def change(path: Path, name: str, value: Any) -> None:
    """Change the first record's field."""
    one, *others = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(one) | {name: value}), *others, ""]))


def test_a_complete_run(desk: Desk) -> None:
    refused(desk, desk.run(right), "run-0: is complete; there is nothing left to ask")


def test_a_run_whose_tasks_were_all_answered(desk: Desk) -> None:
    session = desk.run(invalid)
    assert session.manifest.status is RunStatus.INCOMPLETE
    refused(desk, session, "every task was answered; there is nothing left to ask")


class Absent(Named):
    """A provider whose server is down."""

    def open(self, log_directory: Path) -> "Absent":
        raise InputError("no server")


def test_a_refused_run(desk: Desk) -> None:
    with desk.patch.context() as patch:
        patch.setattr("tests.run.resume.sessions.Named", Absent)
        session = desk.run(right)
    refused(desk, session, "was refused and asked nothing; run it again instead")


def test_of_a_refused_session_the_run_before_it_is_resumed(desk: Desk, first: Session) -> None:
    with desk.patch.context() as patch:
        patch.setattr("tests.run.resume.sessions.Named", Absent)
        session = desk.resume(first)
    assert session.manifest.status is RunStatus.REFUSED
    third = desk.resume(session)
    assert third.manifest.resumed is not None
    assert third.manifest.resumed.path == str(first.path)
    assert third.manifest.resumed.adopted == order()[:2]
    assert third.ids == order()


def test_a_run_that_is_being_written(desk: Desk, first: Session) -> None:
    path = desk.folder / "busy"
    directory = RunDirectory.create(path)
    shutil.copy(first.path / "manifest.json", path)
    refused(desk, Session(path, first.provider), "busy: a process is still writing it")
    directory.release()


@pytest.mark.parametrize("name", ["nowhere", "nothing"])
def test_no_run(desk: Desk, first: Session, name: str) -> None:
    (desk.folder / "nothing").mkdir()
    found = Session(desk.folder / name, first.provider)
    refused(desk, found, "no such folder" if name == "nowhere" else "is this a run directory")


def test_other_tasks(desk: Desk, first: Session) -> None:
    path = first.path / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["dataset"]["dataset_hash"] = "0" * 64
    path.write_text(json.dumps(manifest))
    refused(desk, first, "dataset_hash: the tasks have changed since the run")


def test_another_number_of_tasks(desk: Desk, first: Session) -> None:
    with pytest.raises(InputError, match=r"caps\.limit: 6 tasks were requested, 5 are now"):
        desk.resume(first, using=settings("caps.limit=5"))


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda path: change(path, "correct", None), "fails verification: scores: .*correct"),
        (lambda path: change(path, "predicted", "x"), "fails verification: scores: .*predicted"),
        (lambda path: change(path, "probs", {"no": 1.0}), "fails verification: scores: .*probs"),
        (lambda path: change(path, "task_id", "x"), "fails verification: attempts"),
        (lambda path: change(path, "family", "x"), "fails verification: .*family"),
        (lambda path: change(path, "raw_sha256", "0" * 64), "fails verification: raw files"),
        (lambda path: change(path, "extra", 1), r"fails verification: .*results\.jsonl:1: "),
    ],
)
def test_a_record_that_does_not_hold(
    desk: Desk, first: Session, spoil: Callable[[Path], None], match: str
) -> None:
    spoil(first.path / "results.jsonl")
    refused(desk, first, match)


def test_raw_evidence_that_was_changed(desk: Desk, first: Session) -> None:
    path = RunDirectory(first.path).raw_file(order()[1])
    path.write_bytes(path.read_bytes() + b" ")
    refused(desk, first, "fails verification: raw files")


def test_raw_evidence_that_is_gone(desk: Desk, first: Session) -> None:
    RunDirectory(first.path).raw_file(order()[1]).unlink()
    refused(desk, first, "fails verification: raw files")


def test_a_file_that_was_changed_after_the_seal(desk: Desk) -> None:
    session = desk.run(right, Crash())
    (session.path / "run.log").write_text("")
    refused(desk, session, r"fails verification: files: run\.log")


def test_answers_of_several_models(desk: Desk) -> None:
    def other(request: Any) -> Any:
        return said(request, dict(right(request).probs or {}), model="m-2")

    session = desk.run(right, other, Crash())
    assert session.manifest.stop_reason == "identity_changed"
    refused(desk, session, "several models answered: m-1, m-2")


# Known only when the provider is open: the run is refused, before its first request.


def test_another_fingerprint(desk: Desk, first: Session) -> None:
    class Other(Named):
        def describe(self) -> dict[str, Any]:
            return {"model": "m-1", "readout": {"bias": 13}}

    with desk.patch.context() as patch:
        patch.setattr("tests.run.resume.sessions.Named", Other)
        second = desk.resume(first)
    manifest = second.manifest
    assert manifest.status is RunStatus.REFUSED
    assert manifest.message is not None
    assert manifest.message.startswith("resume: fingerprint: jf1-")
    assert 'readout: null then, {"bias": 13} now' in manifest.message
    assert second.provider.received == []
    assert second.raw == {}


def test_another_model(desk: Desk, first: Session) -> None:
    class Other(Named):
        def describe(self) -> dict[str, Any]:
            return {"model": "m-2"}

    with desk.patch.context() as patch:
        patch.setattr("tests.run.resume.sessions.Named", Other)
        patch.setattr("jevexp.store.records.Adoption.difference", lambda *arguments: None)
        second = desk.resume(first)
    assert second.manifest.message == "resume: 'm-1' answered then, 'm-2' does now"
    assert second.provider.received == []
