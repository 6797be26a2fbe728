"""How long `jevexp compare` takes and how much memory, from directories on disk to JSON.

Many runs on as many tasks as the public benchmark has, and two runs on very many. The runs'
manifests are those of real runs of one task; their answers are made up, and so are the tasks.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from figures import figure

from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness.summary import summarize


class Case(NamedTuple):
    """How many runs on how many tasks, and what they may take: seconds, and bytes of memory."""

    runs: int
    tasks: int
    seconds: float
    memory: float


CASES = (Case(50, 231, 10, 1e9), Case(2, 100_000, 60, 2e9))
FAMILIES = 6


def tasks_of(count: int) -> Iterator[dict[str, Any]]:
    """Made-up tasks of all three kinds, in pairs of wordings."""
    for number in range(count):
        kind = ("noul", "choice", "score")[number // 2 % 3]
        labels = {"noul": ["no", "yes"], "choice": ["a", "b", "c", "d"], "score": ["0", "1", "2"]}
        criteria = {
            "noul": None,
            "choice": {label: f"option {label}" for label in labels["choice"]},
            "score": ["low", "middle", "high"],
        }
        yield {
            "id": f"task-{number:06}",
            "family": f"family-{number % FAMILIES}",
            "state": {"text": f"Something about {number}. " * 4},
            "question": {
                "type": kind,
                "instructions": "Which one is it?",
                "criteria": criteria[kind],
            },
            "labels": labels[kind],
            "expected": {"noul": "yes", "choice": "c", "score": 2}[kind],
            "split": "public",
            "group": f"group-{number // 2:06}",
        }


def answers(tasks: list[Task], template: dict[str, Any], seed: int) -> Iterator[Record]:
    """A made-up answer to every task, four of five right."""
    generator = random.Random(seed)  # noqa: S311 - no secret
    for task in tasks:
        right = generator.random() < 0.8
        top = generator.uniform(0.5, 1)
        others = [label for label in task.labels if label != task.gold]
        predicted = str(task.gold) if right else others[0]
        rest = (1 - top) / (len(task.labels) - 1)
        probs = {label: top if label == predicted else rest for label in task.labels}
        yield Record.model_validate(
            template
            | {
                "task_id": task.id,
                "family": task.family,
                "group": task.group,
                "correct": right,
                "predicted": predicted,
                "probs": probs,
                "probs_as_returned": probs,
                "latency_s": generator.lognormvariate(0, 0.3),
            }
        )


def prepare(folder: Path, case: Case) -> list[Path]:
    """The case's run directories, made from real runs of one task each."""
    file = folder / "tasks.jsonl"
    tasks = [Task.model_validate(one) for one in tasks_of(case.tasks)]
    file.write_text("".join(json.dumps(one) + "\n" for one in tasks_of(case.tasks)))
    command = [sys.executable, "-m", "jevexp", "-m", "dataset=local", f"dataset.path={file}"]
    command += ["backend=fake", "tracking=none", "caps.limit=1", f"outputs={folder}"]
    command += ["backend.seed=" + ",".join(map(str, range(case.runs)))]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    runs = sorted(folder.glob("sweeps/*/*/*/manifest.json"))
    for seed, path in enumerate(runs):
        manifest = json.loads(path.read_text())
        manifest["counts"] = dict.fromkeys(manifest["counts"], case.tasks)
        path.write_text(json.dumps(manifest))
        results = path.with_name("results.jsonl")
        template = json.loads(results.read_text())
        records = list(answers(tasks, template, seed))
        results.write_text("".join(json.dumps(record.line()) + "\n" for record in records))
        path.with_name("summary.json").write_text(json.dumps(summarize(tasks, records).plain()))
    return [path.parent for path in runs]


class Measured(NamedTuple):
    """What one whole process took: seconds, processor seconds, peak bytes; and what it compared."""

    seconds: float
    processor: float
    memory: int
    pairs: int


def measure(runs: list[Path]) -> Measured:
    """Compare the runs in a process of their own."""
    command = [sys.executable, "-m", "jevexp", "compare", "--json", *map(str, runs)]
    with tempfile.TemporaryFile() as output:
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=output)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
        if status:
            raise SystemExit(f"compare ended with status {os.waitstatus_to_exitcode(status)}")
        output.seek(0)
        pairs = len(json.load(output)["matrix"])
    unit = 1 if sys.platform == "darwin" else 1024
    return Measured(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * unit, pairs)


def main() -> int:
    """Print each case with its limits; 1 when one is exceeded."""
    exceeded = False
    print("compare, from disk to JSON")
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(prepare(Path(folder), case))
        met = found.seconds <= case.seconds and found.memory <= case.memory
        exceeded = exceeded or not met
        figure(
            f"compare {case.runs} runs of {case.tasks:,} tasks",
            f"{found.seconds:.1f} s, {found.memory / 1e9:.2f} GB",
            f"{case.seconds:.0f} s, {case.memory / 1e9:.0f} GB",
            met=met,
        )
        print(
            f"  {case.runs:>2} runs, {case.tasks:>7,} tasks, {found.pairs:>5,} pairs  "
            f"{found.seconds:5.1f} s (limit {case.seconds:.0f}), "
            f"{found.processor:.1f} s of processor time, "
            f"{found.memory / 1e9:4.2f} GB (limit {case.memory / 1e9:.0f})"
        )
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
