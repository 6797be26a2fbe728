"""Run directories made by hand, as a finished run leaves them."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness.summary import summarize
from jevexp.settings import Tracking
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.store.directory import LOG

STARTED = "2026-03-01T10:00:00.000Z"
FINISHED = "2026-03-01T10:00:30.500Z"
DATASET_HASH = "ab" * 32
WEIGHTS = "cd" * 32


def tracking(**changed: Any) -> Tracking:
    """Tracking settings as conf/tracking/mlflow.yaml has them, except for what is changed."""
    fields: dict[str, Any] = {
        "kind": "mlflow",
        "uri": None,
        "experiment": "jevexp",
        "raw_evidence": False,
        "report": True,
        "traces": False,
        "timeout_s": 10.0,
        "token_env": None,
        "username_env": None,
        "password_env": None,
    }
    return Tracking.model_validate(fields | changed)


def noul_tasks(count: int, *, families: Sequence[str] = ("policy", "routing")) -> list[Task]:
    """Yes or no questions whose answer is yes, spread over the families."""
    return [
        Task.model_validate(
            {
                "id": f"t{number}",
                "family": families[number % len(families)],
                "state": "A fact.",
                "question": {"type": "noul", "instructions": "Is it so?"},
                "labels": ("no", "yes"),
                "expected": "yes",
                "split": "public",
            }
        )
        for number in range(count)
    ]


def record(task: Task, **changed: Any) -> Record:
    """A right answer to a task, except for what is changed."""
    fields: dict[str, Any] = {
        "task_id": task.id,
        "family": task.family,
        "split": task.split,
        "group": task.group,
        "ts": 1772359210.0,
        "status": "ok",
        "ok": True,
        "valid": True,
        "correct": True,
        "predicted": "yes",
        "ordinal_ev": None,
        "probs": {"no": 0.1, "yes": 0.9},
        "probs_as_returned": {"no": 0.1, "yes": 0.9},
        "strict_valid": True,
        "renormalized": False,
        "probs_source": "native",
        "model": "gemma",
        "error": None,
        "schema_error": None,
        "status_code": None,
        "latency_s": 0.25,
        "usage": {},
        "cost_usd": 0.0,
        "cost_basis": "none",
        "reserved_usd": 0.0,
        "charged_usd": 0.0,
        "raw_sha256": "00" * 32,
        "runtime": None,
    }
    return Record.model_validate(fields | changed)


def wrong(task: Task) -> Record:
    """A wrong answer to a task."""
    return record(task, correct=False, predicted="no", probs={"no": 0.75, "yes": 0.25})


def failure(task: Task) -> Record:
    """A request that came to nothing."""
    return record(
        task,
        status="failed",
        ok=False,
        valid=False,
        correct=False,
        predicted=None,
        probs=None,
        probs_as_returned=None,
        strict_valid=False,
        error="timeout",
    )


def manifest(path: Path, *, status: RunStatus = RunStatus.COMPLETE, **changed: Any) -> Manifest:
    """The manifest of a run at `path`, except for what is changed."""
    ended = status is not RunStatus.RUNNING
    model = {
        "name": "gemma4_q4km",
        "alias": "gemma-4-31b-kv9-q4km-mm",
        "weights": {"file": None, "sha256": WEIGHTS},
        "quantization": {"label": "Q2_K"},
    }
    resolved = {
        "dataset": {"name": "original", "source": "pinned", "files": [{"path": "a.jsonl"}]},
        "model": model,
        "backend": {"name": "llama_cpp", "server": {"context": 4096, "gguf": None}},
        "tracking": tracking().model_dump(mode="json"),
        "outputs": "outputs",
    }
    fields: dict[str, Any] = {
        "run": path.name,
        "sweep": None,
        "status": status,
        "exit_status": 0 if ended else None,
        "stop_reason": None,
        "error": None,
        "message": None,
        "started": STARTED,
        "finished": FINISHED if ended else None,
        "harness": {"name": "native"},
        "software": {
            "jevexp": "0.1.0",
            "git_commit": "ef" * 20,
            "git_dirty": False,
            "python": "3.11.7",
            "platform": "Linux",
            "packages": {},
        },
        "config": {"sha256": "12" * 32, "overrides": [], "resolved": resolved},
        "dataset": {
            "name": "original",
            "dataset_hash": DATASET_HASH,
            "n_tasks": 4,
            "files": [],
            "pin": {"source": "pinned", "commit": "bb05a335bc809e61b20c0f745d25499a82b326fc"},
        },
        "backend": {"name": "llama_cpp", "description": {}},
        "model": {
            "requested": model["alias"],
            "session": None,
            "resolved": ["gemma"],
            "declared": model,
        },
        "identity": None,
        "fingerprint": None,
        "counts": {"requested": 4, "attempted": 4, "answered": 4, "valid": 4},
        "cost_basis": ["none"],
        "ledger": {
            "path": "ledger.jsonl",
            "shared": False,
            "cap_usd": 15.0,
            "charged_by_run_usd": 0.08,
            "charged_usd": 0.08,
            "reason": None,
        },
    }
    return Manifest.model_validate(fields | changed)


def make_run(
    path: Path,
    tasks: Sequence[Task],
    *,
    wrong_ids: Collection[str] = (),
    attempted: int | None = None,
    **changed: Any,
) -> RunDirectory:
    """A sealed run directory that answers the first `attempted` tasks."""
    directory = RunDirectory.create(path)
    for task in tasks[:attempted]:
        directory.append(wrong(task) if task.id in wrong_ids else record(task))
        directory.write_raw(task.id, '{"request": null, "response": null}')
    directory.close()
    (path / LOG).write_text("asking\n")
    directory.write_summary(summarize(tasks, directory.records(), ledger_charged_usd=0.08))
    directory.write_manifest(manifest(path, **changed))
    directory.seal()
    return directory


def make_killed_run(path: Path, tasks: Sequence[Task], attempted: int) -> RunDirectory:
    """What a killed run leaves: half a line, no summary, a manifest that says running."""
    directory = RunDirectory.create(path)
    directory.write_manifest(manifest(path, status=RunStatus.RUNNING))
    for task in tasks[:attempted]:
        directory.append(record(task))
    directory.close()
    with (path / "results.jsonl").open("ab") as results:
        results.write(b'{"task_id": "t')
    return directory
