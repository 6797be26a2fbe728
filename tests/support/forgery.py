"""Changes to finished run directories, with the checksums made to fit again."""

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHECKSUMS = "checksums.sha256"


def reseal(run: Path) -> None:
    """Write the checksums anew, as somebody would who wants a change to pass."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(run).as_posix()}\n"
        for path in sorted(run.rglob("*"))
        if path.is_file() and path.name != CHECKSUMS
    ]
    (run / CHECKSUMS).write_text("".join(lines))


def lines(run: Path, name: str) -> list[dict[str, Any]]:
    """The objects in a file of JSON lines."""
    return [json.loads(line) for line in (run / name).read_bytes().splitlines()]


def write_lines(run: Path, name: str, values: list[dict[str, Any]]) -> None:
    """Write objects as jevexp writes them, one a line."""
    text = "".join(f"{json.dumps(value, ensure_ascii=False)}\n" for value in values)
    (run / name).write_text(text)


def edit(run: Path, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the object in a JSON file."""
    value = json.loads((run / name).read_bytes())
    change(value)
    (run / name).write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def edit_line(run: Path, name: str, number: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Change one object, counted from 0, in a file of JSON lines."""
    values = lines(run, name)
    change(values[number])
    write_lines(run, name, values)


def raw_file(run: Path, task_id: str) -> Path:
    """Where a task's raw evidence is."""
    return run / "raw" / f"{hashlib.sha256(task_id.encode()).hexdigest()}.json"


def edit_raw(run: Path, number: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the raw evidence of one record, and the record's hash of it."""
    values = lines(run, "results.jsonl")
    path = raw_file(run, values[number]["task_id"])
    raw = json.loads(path.read_bytes())
    change(raw)
    path.write_text(json.dumps(raw, ensure_ascii=False))
    values[number]["raw_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    write_lines(run, "results.jsonl", values)


def change_one_byte(path: Path, draw: random.Random) -> bytes:
    """Replace one byte of a file by any other; returns what the file held."""
    before = path.read_bytes()
    changed = bytearray(before)
    at = draw.randrange(len(changed))
    changed[at] = draw.choice([value for value in range(256) if value != changed[at]])
    path.write_bytes(changed)
    return before
