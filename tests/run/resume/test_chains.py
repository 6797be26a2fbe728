"""Runs that each name the run before: wherever that leads, it ends with a reason in one line."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jevexp.cli.main import main
from jevexp.errors import InputError
from jevexp.run.resuming import read_earlier
from tests.run.resume.sessions import Desk, Killed, Session, right

NOT_THERE = "asked nothing itself, and the run that it goes on with is not at "


@pytest.fixture
def first(desk: Desk) -> Session:
    """A run that ended after two of its tasks."""
    return desk.run(right, right, Killed())


def refused_after(run: Path, before: Path, **changed: Any) -> Path:
    """A run that asked nothing and was to go on with another one."""
    run.mkdir()
    fields = json.loads((before / "manifest.json").read_text())
    resumed = {
        "run": fields["run"],
        "path": str(before),
        "manifest_sha256": sha256(before),
        "checksums_sha256": None,
        "adopted": [],
        "recovered": [],
        "charged_usd": 0.0,
        "sessions": [],
    }
    fields |= {"run": run.name, "status": "refused", "resumed": resumed | changed}
    (run / "manifest.json").write_text(json.dumps(fields))
    (run / "results.jsonl").touch()
    return run


def sha256(run: Path) -> str:
    return hashlib.sha256((run / "manifest.json").read_bytes()).hexdigest()


def why_not(run: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_earlier(run)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_chain_leads_to_the_run_with_the_answers(desk: Desk, first: Session) -> None:
    path = first.path
    for number in range(5):
        path = refused_after(desk.folder / f"refused-{number}", path)
    assert read_earlier(path).path == first.path


def test_a_run_that_was_moved_is_found_beside_the_one_that_names_it(
    desk: Desk, first: Session
) -> None:
    run = refused_after(desk.folder / "refused", first.path)
    elsewhere = desk.folder / "elsewhere"
    elsewhere.mkdir()
    for path in (first.path, run):
        shutil.move(path, elsewhere)
    assert read_earlier(elsewhere / "refused").path == elsewhere / first.path.name


def test_a_circle_ends(desk: Desk, first: Session) -> None:
    one = refused_after(desk.folder / "one", first.path)
    two = refused_after(desk.folder / "two", one)
    shutil.rmtree(one)
    refused_after(one, two)
    assert NOT_THERE in why_not(one)
    shutil.rmtree(one)
    refused_after(one, first.path, path=str(one))
    assert NOT_THERE in why_not(one)


def test_an_endless_chain_ends(desk: Desk, first: Session) -> None:
    path = first.path
    for number in range(100):
        path = refused_after(desk.folder / f"refused-{number}", path)
    assert why_not(path) == (
        f"resume: {path}: more than 100 runs before it that each asked nothing; name the one that "
        "holds the answers"
    )


def gone(path: Path) -> None:
    shutil.rmtree(path)


def changed(path: Path) -> None:
    (path / "manifest.json").write_bytes((path / "manifest.json").read_bytes() + b" ")


def pipe(path: Path) -> None:
    (path / "manifest.json").unlink()
    os.mkfifo(path / "manifest.json")


def link(path: Path) -> None:
    (path / "manifest.json").rename(path / "other.json")
    (path / "manifest.json").symlink_to("other.json")


@pytest.mark.parametrize("spoil", [gone, changed, pipe, link])
def test_a_run_before_that_is_not_as_it_was_is_refused(
    spoil: Callable[[Path], None], desk: Desk, first: Session
) -> None:
    run = refused_after(desk.folder / "refused", first.path)
    spoil(first.path)
    assert why_not(run) == (
        f"resume: {run}: {NOT_THERE}{first.path} as it was; put that back there, or beside this one"
    )


@pytest.mark.parametrize("verb", ["verify", "receipt", "resume"])
@pytest.mark.parametrize(
    "place", ["", "/", ".", "..", "a\0b", "/dev/zero", "x" * 5000, "itself", "a pipe", "gone"]
)
def test_every_verb_ends_wherever_a_run_says_that_it_comes_from(
    verb: str, place: str, desk: Desk, first: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.resume(first, right, Killed())
    run = desk.sessions[-1].path
    os.mkfifo(desk.folder / "a pipe")
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["resumed"]["path"] = str(run) if place == "itself" else place
    (run / "manifest.json").write_text(json.dumps(manifest))
    command = [f"resume={run}"] if verb == "resume" else [verb, str(run)]
    capsys.readouterr()
    # 3: what is there holds, as far as the run got.
    assert main(command) == (2 if verb == "resume" else 3)
    printed = capsys.readouterr()
    if verb == "resume":
        (line,) = printed.err.splitlines()
        assert line.startswith(f"error: resume: {run}: ")
    if verb == "verify":
        assert f"the earlier run {manifest['resumed']['run']} is not here" in printed.out
