"""A process that is killed with requests under way loses no answer and has none twice."""

import hashlib
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jevexp.store import RunDirectory
from tests.harness.concurrent.bench import LONG
from tests.harness.concurrent.child import CONCURRENCY

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_was_answered_is_found_again(tmp_path: Path, seed: int) -> None:
    command = [sys.executable, "-m", "tests.harness.concurrent.child", str(tmp_path), str(seed)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        draw = random.Random(seed)
        some = draw.randrange(3_000, 10_000)
        ends = time.monotonic() + LONG
        while time.monotonic() < ends and size(tmp_path / "ledger.jsonl") < some:
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.01))
        child.kill()
    directory = RunDirectory(tmp_path / "run")
    recorded = [record.task_id for record in directory.records()]
    early = [record.task_id for record in directory.early_records()]
    held = [one.record.task_id for one in directory.held()]

    assert recorded
    assert recorded == [f"t{number}" for number in range(len(recorded))]
    assert len(early) == len(set(early))
    assert not {*early} & {*recorded}
    answered = {*recorded, *early, *held}
    raw = {path.stem for path in directory.raw.iterdir()}
    assert raw <= {hashlib.sha256(name.encode()).hexdigest() for name in answered}
    settled = rows(tmp_path / "ledger.jsonl", "settle")
    assert set(settled) <= answered
    assert len(settled) == len(set(settled))
    reserved = rows(tmp_path / "ledger.jsonl", "reserve")
    assert answered <= set(reserved)
    # Under way, at the disk, or reserved for what goes out next.
    assert len(reserved) - len(settled) <= 2 * CONCURRENCY


def size(path: Path) -> int:
    """How many bytes a file has by now."""
    return path.stat().st_size if path.exists() else 0


def rows(ledger: Path, event: str) -> list[str]:
    """The tasks of the rows of one kind; a row that was cut off is none."""
    lines = ledger.read_text().splitlines(keepends=True) if ledger.exists() else []
    whole = [json.loads(line) for line in lines if line.endswith("\n")]
    return [row["meta"]["task_id"] for row in whole if row["event"] == event]
