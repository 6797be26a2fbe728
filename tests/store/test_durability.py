"""What is forced to disk, in which order, and what a write that fails in between leaves behind."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jevexp.core.record import Record
from jevexp.harness.summary import summarize
from jevexp.store import RunDirectory
from jevexp.store.manifest import Resumed
from jevexp.store.records import AdoptedAnswer, Adoption
from tests.support.runs import manifest
from tests.support.tasks import record, task

RAW = "{}"
RECORDS = [
    record(task("noul", id=f"t{number}"), raw_sha256=hashlib.sha256(RAW.encode()).hexdigest())
    for number in range(3)
]


class Disk:
    """Notes each fsync by what it was on, as a path below a folder, and what happens besides."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.events: list[str] = []
        self._folder = folder
        self._fails_on: str | None = None
        self._sync = os.fsync
        patch.setattr(os, "fsync", self._synced)
        patch.setattr(os, "sync", lambda: self.events.append("everything"))
        unlink = os.unlink

        def removed(path: str | Path, *, dir_fd: int | None = None) -> None:
            unlink(path, dir_fd=dir_fd)
            self.events.append(f"remove {_short(Path(path).name)}")

        patch.setattr(os, "unlink", removed)

    def fail_on(self, name: str) -> None:
        """From now on nothing can be forced to this file."""
        self._fails_on = name

    def _synced(self, file: int) -> None:
        of = os.fstat(file)
        everything = [self._folder, *self._folder.rglob("*")]
        (path,) = (path for path in everything if os.path.samestat(path.stat(), of))
        name = self._name(path)
        self.events.append(name)
        if name == self._fails_on:
            raise OSError(28, "No space left on device")
        self._sync(file)

    def _name(self, path: Path) -> str:
        return _short(path.relative_to(self._folder).as_posix())


def _short(name: str) -> str:
    return name.replace(_file(RECORDS[0]), "FIRST").replace(_file(RECORDS[1]), "SECOND")


def _file(one: Record) -> str:
    return hashlib.sha256(one.task_id.encode()).hexdigest() + ".json"


@pytest.fixture
def run(tmp_path: Path) -> Any:
    directory = RunDirectory.create(tmp_path / "run")
    yield directory
    directory.release()


@pytest.fixture
def disk(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(run.path, monkeypatch)


def test_a_fresh_directory_is_on_disk_with_all_that_it_was_made_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"
    made: list[set[str]] = []
    sync = os.fsync

    def synced(file: int) -> None:
        if os.path.samestat(os.fstat(file), path.stat()):
            made.append({entry.name for entry in path.iterdir()})
        sync(file)

    monkeypatch.setattr(os, "fsync", synced)
    RunDirectory.create(path).release()
    assert made == [{"raw", "results.jsonl", "pending"}]


def test_raw_evidence_is_on_disk_with_its_name(run: RunDirectory, disk: Disk) -> None:
    assert run.write_raw("t0", RAW) == hashlib.sha256(RAW.encode()).hexdigest()
    assert disk.events == ["raw/FIRST", "raw"]


def test_a_held_answer_goes_when_its_record_is_on_disk(run: RunDirectory, disk: Disk) -> None:
    run.hold(RECORDS[0], RAW)
    run.append(RECORDS[0])
    assert disk.events == ["results.jsonl", "remove FIRST"]


def test_a_held_answer_goes_when_its_early_record_is_on_disk(run: RunDirectory, disk: Disk) -> None:
    run.hold(RECORDS[1], RAW)
    run.append_early([RECORDS[1]])
    assert disk.events == [".", "early.jsonl", "remove SECOND"]


@pytest.mark.parametrize(
    ("keep", "file"),
    [
        (lambda run, one: run.append(one), "results.jsonl"),
        (lambda run, one: run.append_early([one]), "early.jsonl"),
    ],
    ids=["in its turn", "early"],
)
def test_a_record_that_the_disk_refuses_leaves_its_answer_held(
    run: RunDirectory, disk: Disk, keep: Callable[[RunDirectory, Record], None], file: str
) -> None:
    run.hold(RECORDS[1], RAW)
    disk.fail_on(file)
    with pytest.raises(OSError, match="No space left"):
        keep(run, RECORDS[1])
    assert [held.record for held in run.held()] == [RECORDS[1]]


def test_early_records_go_after_the_results_have_them(run: RunDirectory, disk: Disk) -> None:
    run.append_early([RECORDS[1]])
    disk.events.clear()
    run.append_all(RECORDS[:2])
    run.drop_early()
    run.drop_early()
    assert disk.events == ["results.jsonl", "remove early.jsonl", "."]


def test_copies_of_raw_evidence_are_on_disk_before_their_records(
    run: RunDirectory, disk: Disk, tmp_path: Path
) -> None:
    raw = tmp_path / "earlier.json"
    raw.write_text(RAW)
    answers = (AdoptedAnswer(RECORDS[0], raw),)
    entry = Resumed(
        run="earlier", path=str(tmp_path), manifest_sha256="0" * 64, checksums_sha256=None,
        adopted=["t0"], recovered=[], charged_usd=0.0, sessions=[],
    )  # fmt: skip
    run.adopt(Adoption(entry, answers, None), [one.task_id for one in RECORDS])
    assert disk.events == ["everything", ".", "early.jsonl", "results.jsonl"]
    assert list(run.records()) == RECORDS[:1]


@pytest.mark.parametrize("name", ["manifest", "summary", "checksums"])
def test_what_replaces_a_file_is_on_disk_and_then_its_name(
    run: RunDirectory, disk: Disk, name: str
) -> None:
    if name == "manifest":
        run.write_manifest(manifest(run.path))
    elif name == "summary":
        run.write_summary(summarize([], [], ledger_charged_usd=0.0))
    else:
        run.seal()
    (file, folder) = disk.events
    assert file.startswith(f".{name}")
    assert folder == "."
