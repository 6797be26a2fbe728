"""Task files of any length for measurements: the shipped demo's tasks over and over, each new."""

import json
from pathlib import Path

DEMO = Path(__file__).parents[1] / "src/jevexp/datasets/demo.jsonl"


def write_tasks(path: Path, count: int) -> Path:
    """Write `count` tasks; ids, groups and states differ, so that no two are the same question."""
    shipped = [json.loads(line) for line in DEMO.read_text().splitlines()]
    with path.open("w") as file:
        for number in range(count):
            task = dict(shipped[number % len(shipped)])
            round_ = number // len(shipped)
            task["id"] = f"{task['id']}-{round_}"
            task["state"] = {"number": round_, "text": task["state"]}
            if task.get("group"):
                task["group"] = f"{task['group']}-{round_}"
            file.write(json.dumps(task, ensure_ascii=False) + "\n")
    return path
