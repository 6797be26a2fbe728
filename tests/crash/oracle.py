"""What has to hold of a directory after a kill, and of it and its resumed run together."""

import contextlib
import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jevexp.cli.main import main
from jevexp.store import RunDirectory
from jevexp.verification import State, verify_run
from tests.crash.child import Log

RESERVED_USD = 0.02


def run_directories(outputs: Path) -> list[Path]:
    """All runs below a folder, killed before their manifest or not, oldest first."""
    return sorted(
        path.parent for path in outputs.glob("**/results.jsonl") if "upstream" not in path.parts
    )


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The complete rows of a ledger; none where there is none."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1] if line.strip()]


def rows(run: Path) -> list[dict[str, Any]]:
    """The complete rows of a run's own ledger."""
    return rows_of(run / "ledger.jsonl")


def charged(run: Path) -> float:
    """What the ledger's rows come to, added up independently of the program."""
    amounts: dict[str, float] = {}
    for row in rows(run):
        if row["event"] == "reserve":
            amounts[row["reservation_id"]] = row["reserved_usd"]
        elif row["event"] == "settle":
            amounts[row["reservation_id"]] = row["charged_usd"]
    return sum(amounts.values())


def reads_cleanly(outputs: Path, run: Path, *, compare_with: Path | None = None) -> list[str]:
    """Faults of the verbs that read runs: a traceback, or a status that they must not have."""
    faults = []
    commands: list[tuple[list[str], set[int]]] = [
        (["list", "--outputs", str(outputs)], {0}),
        (["summarize", str(run)], {0, 1}),
    ]
    if compare_with is not None:
        commands.append((["compare", str(run), str(compare_with)], {0}))
    for command, statuses in commands:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                status: int | str = main(command)
            except Exception as error:  # noqa: BLE001  what must never come out
                status = repr(error)
        if status not in statuses:
            faults.append(f"{' '.join(command[:1])} came to {status}: {printed.getvalue()[-500:]}")
    return faults


def exported(run: Path) -> list[str]:
    """Faults of `export` on a complete run whose tracking was killed: it must be there once."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        statuses = [main(["export", str(run)]) for _ in range(2)]
    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{Path('outputs/mlflow.db').absolute()}")
    found = [one.info.status for one in client.search_runs(["1"])]
    if statuses != [0, 0] or found != ["FINISHED"]:
        return [f"export came to {statuses}, MLflow has {found}: {printed.getvalue()[-500:]}"]
    return []


def verified(run: Path, *, sealed: bool) -> list[str]:
    """Faults of `verify` on a killed run: incomplete, with a reason, and never failed."""
    report = verify_run(run)
    if report.state is State.FAILED:
        failed = [
            f"{check.name}: {f.place}: {f.message}"
            for check in report.checks
            for f in check.failures
        ]
        return [f"verify says failed: {'; '.join(failed)}"]
    expected = State.VERIFIED if sealed else State.INCOMPLETE
    if report.state is not expected or (not sealed and not report.incomplete):
        return [f"verify says {report.state}, {report.incomplete}"]
    return []


def union(order: Sequence[str], last: Path, log: Log) -> list[str]:
    """Faults of a resumed run: answers lost, asked twice or counted twice.

    Args:
        order: the ids of the tasks, in the dataset's order.
        last: the directory of the last session, which is complete.
        log: what all sessions did.
    """
    faults = []
    records = list(RunDirectory(last).records())
    if [record.task_id for record in records] != list(order):
        faults.append(f"{len(records)} records of {len(order)} tasks, or in another order")
    for record in records:
        name = hashlib.sha256(record.task_id.encode()).hexdigest()
        raw = (last / "raw" / f"{name}.json").read_bytes()
        if hashlib.sha256(raw).hexdigest() != record.raw_sha256:
            faults.append(f"{record.task_id}: not its raw evidence")
    faults += [f"answered, put aside, and asked again: {task_id}" for task_id in log.asked_again]
    if lost := log.held - {record.task_id for record in records}:
        faults.append(f"answered and lost: {sorted(lost)}")
    return faults


def books(log: Log, runs: Sequence[Path]) -> list[str]:
    """Faults of the charges of all sessions together."""
    reserved = sum(row["event"] == "reserve" for run in runs for row in rows(run))
    total = sum(map(charged, runs))
    faults = []
    if abs(total - reserved * RESERVED_USD) > 1e-9:
        faults.append(f"charged {total}, reserved {reserved} times {RESERVED_USD}")
    # Of each kill at most one reservation never became a request.
    if not 0 <= reserved - log.asked.total() <= len(runs):
        faults.append(f"reserved {reserved} times, asked {log.asked.total()} times")
    return faults
