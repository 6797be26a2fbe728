"""What is not resumed, and the one line that says why; nothing is written then."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jevexp.errors import InputError
from jevexp.evidence import RunDirectory, RunStatus
from tests.resume.sessions import Desk, Killed, Session, order, right, settings
from tests.support.provider import Provider
from tests.support.tasks import answer


@pytest.fixture
def first(desk: Desk) -> Session:
    """A run that ended after two of its tasks, never sealed, as a kill leaves it."""
    with desk.patch.context() as patch:
        patch.setattr(RunDirectory, "seal", lambda directory: None)
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
    invalid = desk.run(answer({"no": 3.0}))
    assert invalid.manifest.status is RunStatus.INCOMPLETE
    refused(desk, invalid, "every task was answered; there is nothing left to ask")


def test_a_refused_run(desk: Desk) -> None:
    class Absent(Provider):
        def open(self, log_directory: Path) -> "Absent":
            raise InputError("no server")

    with desk.patch.context() as patch:
        patch.setattr("tests.resume.sessions.Provider", Absent)
        session = desk.run(right)
    refused(desk, session, "was refused and asked nothing; run it again instead")


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
        (lambda path: change(path, "correct", None), "scored again, correct is another"),
        (lambda path: change(path, "predicted", "x"), "scored again, predicted is another"),
        (lambda path: change(path, "probs", {"no": 1.0}), "scored again, probs is another"),
        (lambda path: change(path, "task_id", "x"), "task 'x': is none of the run's tasks"),
        (lambda path: change(path, "family", "x"), "its record belongs to another task"),
        (lambda path: change(path, "raw_sha256", "0" * 64), "not the raw evidence of task"),
        (lambda path: change(path, "extra", 1), r"results\.jsonl:1: not a record: extra"),
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
    refused(desk, first, "not the raw evidence of task")


def test_raw_evidence_that_is_gone(desk: Desk, first: Session) -> None:
    RunDirectory(first.path).raw_file(order()[1]).unlink()
    refused(desk, first, "No such file")


def test_a_file_that_was_changed_after_the_seal(desk: Desk) -> None:
    session = desk.run(right, Killed())
    (session.path / "run.log").write_text("")
    refused(desk, session, r"run\.log: was changed after the run")


def test_answers_of_several_models(desk: Desk) -> None:
    def other(request: Any) -> Any:
        return answer(right(request).probs, model="m-2")

    session = desk.run(right, other, Killed())
    assert session.manifest.stop_reason == "identity_changed"
    refused(desk, session, "several models answered: m-1, m-2")


# Known only when the provider is open: the run is refused, before its first request.


def test_another_fingerprint(desk: Desk, first: Session) -> None:
    class Other(Provider):
        def describe(self) -> dict[str, Any]:
            return {"model": "m-1", "readout": {"bias": 13}}

    with desk.patch.context() as patch:
        patch.setattr("tests.resume.sessions.Provider", Other)
        second = desk.resume(first)
    manifest = second.manifest
    assert manifest.status is RunStatus.REFUSED
    assert manifest.message is not None
    assert manifest.message.startswith("resume: fingerprint: jf1-")
    assert 'readout: null then, {"bias": 13} now' in manifest.message
    assert second.provider.received == []
    assert second.raw == {}


def test_another_model(desk: Desk, first: Session) -> None:
    class Other(Provider):
        def describe(self) -> dict[str, Any]:
            return {"model": "m-2"}

    with desk.patch.context() as patch:
        patch.setattr("tests.resume.sessions.Provider", Other)
        patch.setattr("jevexp.evidence.adoption.Adoption.difference", lambda *arguments: None)
        second = desk.resume(first)
    assert second.manifest.message == "resume: 'm-1' answered then, 'm-2' does now"
    assert second.provider.received == []


def test_a_last_line_that_was_cut_off_is_asked_again(desk: Desk, first: Session) -> None:
    path = first.path / "results.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    second = desk.resume(first)
    assert second.manifest.status is RunStatus.COMPLETE
    assert second.manifest.resumed is not None
    assert second.manifest.resumed.adopted == order()[:1]
