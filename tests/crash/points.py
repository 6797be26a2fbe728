"""Where a process is killed: the real functions, each wrapped so that its nth call is the last."""

import os
import signal
from collections.abc import Callable
from functools import wraps
from io import FileIO
from pathlib import Path
from typing import Any, NoReturn

from jevexp.backends.fake import Fake
from jevexp.backends.llama_cpp import LlamaCpp
from jevexp.core.decision import Request
from jevexp.core.json import dumps
from jevexp.ledger import file as ledger_file
from jevexp.ledger import state
from jevexp.ledger.file import FileLedger
from jevexp.ledger.state import Row
from jevexp.run import running
from jevexp.store import RunDirectory
from jevexp.store.directory import PENDING
from jevexp.store.records import raw_name
from jevexp.tracking.mlflow import MlflowTracker
from jevexp.untrusted import writing

NO_RUN_YET = "before the first manifest"
COPIED, TAKING_OVER = "while raw files are copied", "inside the adopted records"
BEFORE_TRACKING = "before MLflow logs"
WHILE_TRACKING = "while MLflow logs"


def die() -> NoReturn:
    """What the kernel, a batch system or a person with kill -9 does."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


class Count:
    """Kills at the nth call, counted over all wrapped functions that share it."""

    def __init__(self, nth: int) -> None:
        self._left = nth

    def is_last(self) -> bool:
        self._left -= 1
        return self._left == 0


def before(owner: Any, name: str, count: Count) -> None:
    """Kill instead of calling."""
    original = getattr(owner, name)

    @wraps(original)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        if count.is_last():
            die()
        return original(*arguments, **named)

    setattr(owner, name, wrapped)


def after(owner: Any, name: str, count: Count) -> None:
    """Kill once the call has done its work."""
    original = getattr(owner, name)

    @wraps(original)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        came = original(*arguments, **named)
        if count.is_last():
            die()
        return came

    setattr(owner, name, wrapped)


def inside_file(name_part: str, count: Count) -> None:
    """Kill in the middle of a write to a file whose name holds `name_part`."""
    original = writing.write_all

    def torn(file: FileIO, data: bytes) -> None:
        if data and name_part in str(file.name) and count.is_last():
            file.write(data[: max(1, len(data) // 2)])
            die()
        original(file, data)

    # Where durable writes and replacements look it up; copies that are not forced to disk do not.
    setattr(writing, "write_all", torn)  # noqa: B010  mypy


def inside_row(event: str, count: Count) -> None:
    """Kill in the middle of a ledger row."""
    original = state.append

    def torn(file: int, row: Row, path: Path) -> int:
        if row.get("event") == event and count.is_last():
            line = dumps(row).encode()
            os.write(file, line[: len(line) // 2])
            die()
        return original(file, row, path)

    for module in (ledger_file, state):
        setattr(module, "append", torn)  # noqa: B010  mypy


def inside_hold(count: Count) -> None:
    """Kill while an answer is being put aside."""

    def torn(directory: RunDirectory, record: Any, raw: str) -> None:
        held = dumps({"record": record.line(), "raw": raw}).encode()
        path = directory.path / PENDING / raw_name(record.task_id)
        path.write_bytes(held[: len(held) // 2] if count.is_last() else held)
        if count._left == 0:
            die()

    setattr(RunDirectory, "hold", torn)  # noqa: B010  mypy


def before_rename(name: str, count: Count) -> None:
    """Kill when a file is written beside and not in its place yet."""
    original = os.rename

    def killed(old: Any, new: Any, **folders: Any) -> None:
        if new == name and count.is_last():
            die()
        original(old, new, **folders)

    setattr(os, "rename", killed)  # noqa: B010  mypy


def _ask(where: Callable[[Any, str, Count], None]) -> Callable[[Count], None]:
    def arm(count: Count) -> None:
        for backend in (Fake, LlamaCpp):
            where(backend, "decide", count)

    return arm


def while_mlflow_logs(count: Count) -> None:
    """Kill when MLflow has the run and not all of it."""
    from mlflow.tracking import MlflowClient

    before(MlflowClient, "log_batch", count)


# Reached only by a run that resumes another one.
ONLY_RESUMED = (COPIED, TAKING_OVER)
# A resumed run that dies here holds none of the answers that it was to take over.
NOTHING_TAKEN_OVER = (NO_RUN_YET, *ONLY_RESUMED)
# In the order of a run. `True`: comes once a task; else once or a few times a run.
POINTS: dict[str, tuple[Callable[[Count], None], bool]] = {
    NO_RUN_YET: (lambda c: before(RunDirectory, "write_manifest", c), False),
    "before the provider opens": (lambda c: before(Fake, "open", c), False),
    COPIED: (lambda c: before(os, "sync", c), False),
    TAKING_OVER: (lambda c: inside_file("/early.jsonl", c), False),
    "before reserve": (lambda c: before(FileLedger, "reserve", c), True),
    "inside the reserve row": (lambda c: inside_row("reserve", c), True),
    "after reserve": (lambda c: after(FileLedger, "reserve", c), True),
    "while asking": (_ask(before), True),
    "after the answer": (_ask(after), True),
    "inside the held answer": (inside_hold, True),
    "after the held answer": (lambda c: before(RunDirectory, "write_raw", c), True),
    "inside the raw file": (lambda c: inside_file("/raw/", c), True),
    "between raw and settle": (lambda c: before(FileLedger, "settle", c), True),
    "inside the settle row": (lambda c: inside_row("settle", c), True),
    "between settle and record": (lambda c: after(FileLedger, "settle", c), True),
    "inside the record": (lambda c: inside_file("/results.jsonl", c), True),
    "after the record": (lambda c: before(RunDirectory, "_forget_held", c), True),
    "between record and manifest": (lambda c: before(running, "_complete", c), False),
    "inside the summary": (lambda c: inside_file(".summary.json", c), False),
    "before the summary is in place": (lambda c: before_rename("summary.json", c), False),
    "inside the last manifest": (lambda c: inside_file(".manifest.json", _fourth(c)), False),
    "before the manifest is in place": (
        lambda c: before_rename("manifest.json", _fourth(c)),
        False,
    ),
    "before the seal": (lambda c: before(RunDirectory, "seal", c), False),
    "inside the seal": (lambda c: inside_file(".checksums.sha256", c), False),
    "after the seal": (lambda c: after(RunDirectory, "seal", c), False),
    BEFORE_TRACKING: (lambda c: before(MlflowTracker, "log", c), False),
    WHILE_TRACKING: (while_mlflow_logs, False),
}


def _fourth(_: Count) -> Count:
    """The manifest is written at the start, with the provider open, and twice at the end."""
    return Count(4)


def watch(log: int, names: dict[str, str]) -> None:
    """Note in a file, which outlives a kill, what was asked and what was put aside."""

    def note(word: str, task_id: str) -> None:
        os.write(log, f"{word} {task_id}\n".encode())

    for backend in (Fake, LlamaCpp):
        original = backend.decide

        def asked(self: Any, request: Request, original: Any = original) -> Any:
            note("asked", names[key(request.state, request.question.wire())])
            return original(self, request)

        setattr(backend, "decide", asked)  # noqa: B010  mypy
    hold = RunDirectory.hold

    def held(directory: RunDirectory, record: Any, raw: str) -> None:
        hold(directory, record, raw)
        note("held", record.task_id)

    setattr(RunDirectory, "hold", held)  # noqa: B010  mypy


def key(state: Any, question: Any) -> str:
    """What tells the requests of a dataset apart."""
    return dumps([state, question], sort_keys=True)
