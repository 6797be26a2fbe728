"""Earlier runs and files of answers for the replay backend."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jevexp.backends.protocol import Backend
from jevexp.core.decision import Request
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness.runner import RunContext, Runner, Tariff
from jevexp.ledger.file import FileLedger
from jevexp.settings import ReplayBackend
from jevexp.store import RunDirectory
from tests.support.runs import manifest


def replay_settings(*, run: Path | None = None, answers: Path | None = None) -> ReplayBackend:
    """Settings as conf/backend/replay.yaml has them, with a source."""
    return ReplayBackend(
        kind="replay",
        name="replay",
        run=str(run) if run else None,
        answers=str(answers) if answers else None,
    )


def ask(
    path: Path,
    tasks: Sequence[Task],
    backend: Backend,
    *,
    model: str = "m-1",
    **changed: Any,
) -> list[Record]:
    """Put tasks to a backend and leave a sealed run directory; returns its records."""
    directory = RunDirectory.create(path)
    with FileLedger(path / "ledger.jsonl", 15.0) as ledger:
        tariff = Tariff(basis=backend.cost_basis)
        context = RunContext(
            backend, ledger, directory, model=model, tariff=tariff, reserve_usd=0.0
        )
        Runner(context).run(tasks)
    directory.close()
    directory.write_manifest(manifest(path, **changed))
    directory.seal()
    return list(directory.records())


def write_answers(path: Path, answers: Sequence[tuple[Request, dict[str, Any]]]) -> Path:
    """A JSON Lines file of answers to requests."""
    lines = [
        {"state": request.state, "question": request.question.wire(), **answer}
        for request, answer in answers
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path
