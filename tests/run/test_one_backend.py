"""A run makes its backend once, in its plan: neither checks nor a resume make a second one."""

import hashlib
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jevexp.backends import replay
from jevexp.cli.main import main
from jevexp.store import RunDirectory, RunStatus

DEMO = ("dataset=demo", "tracking=none", "caps.limit=4")
FACTORY = "backend.factory=counted_model:make"
MODEL = """
from pathlib import Path

def make():
    with Path("made").open("a") as file:
        file.write("x")
    return decide

def decide(request):
    with Path("asked").open("a") as file:
        file.write("x")
    if Path("asked").stat().st_size == 2:
        raise ValueError("the second question is never answered")
    options = request.question.options
    return dict.fromkeys(options, 1 / len(options))
"""


@pytest.mark.usefixtures("workplace")
def test_a_factory_is_called_once_in_a_run_and_once_in_what_resumes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "counted_model", raising=False)
    Path("counted_model.py").write_text(MODEL)

    assert main([*DEMO, "backend=python", FACTORY, "hydra.run.dir=first"]) == 1
    assert Path("made").read_text() == "x"
    assert RunDirectory(Path("first")).read_manifest().counts.answered == 3

    assert main(["resume=first", FACTORY, "hydra.run.dir=second"]) == 0
    assert Path("made").read_text() == "xx"
    assert Path("asked").read_text() == "x" * 5
    assert RunDirectory(Path("second")).read_manifest().status is RunStatus.COMPLETE


@pytest.mark.usefixtures("workplace")
def test_a_replay_hashes_every_file_of_its_source_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert main([*DEMO, "hydra.run.dir=source"]) == 0
    files = {path.stat().st_ino: path for path in Path("source").rglob("*") if path.is_file()}
    hashed: Counter[Path] = Counter()
    file_digest = hashlib.file_digest

    def counted(file: Any, *arguments: Any) -> Any:
        if path := files.get(os.fstat(file.fileno()).st_ino):
            hashed[path] += 1
        return file_digest(file, *arguments)

    monkeypatch.setattr(hashlib, "file_digest", counted)

    assert main([*DEMO, "backend=replay", "backend.run=source", "hydra.run.dir=replayed"]) == 0

    assert hashed == Counter(files.values())


@pytest.mark.usefixtures("workplace")
def test_a_replay_reads_a_file_of_answers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert main([*DEMO, "hydra.run.dir=source"]) == 0
    with Path("answers.jsonl").open("w") as file:
        for path in Path("source/raw").iterdir():
            raw = json.loads(path.read_text())
            line = {
                "state": raw["request"]["state"],
                "question": raw["request"]["questions"]["decision"],
                "probs": raw["response"]["probabilities"],
            }
            file.write(json.dumps(line) + "\n")
    read: list[Path] = []
    read_answers = replay.read_answers

    def counted(path: Path) -> Any:
        read.append(path)
        return read_answers(path)

    monkeypatch.setattr(replay, "read_answers", counted)

    answers = ("backend=replay", "backend.answers=answers.jsonl")
    assert main([*DEMO, *answers, "hydra.run.dir=replayed"]) == 0

    assert read == [Path("answers.jsonl")]
