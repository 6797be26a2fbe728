"""The process that MLflow's client works in: `python -m jevexp.tracking.mlflow.child_process`.

Standard input says what is asked, one JSON text a line; see `jevexp.tracking.mlflow.child`.
"""

import json
import os
import queue
import shutil
import sys
import threading
from collections.abc import Container, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jevexp.core.json import dumps
from jevexp.settings import MlflowTracking
from jevexp.store import RunDirectory
from jevexp.tracking import SweepComparison, TrackingError
from jevexp.tracking.mlflow.content import Content, Trace
from jevexp.tracking.mlflow.environment import PASSWORD, TOKEN, USERNAME, mlflow_environment
from jevexp.tracking.mlflow.location import StoreLocation
from jevexp.tracking.mlflow.store import MlflowStore

# What the process may take beyond MLflow itself, for what a server sends.
MEMORY_BYTES = 512 << 20
# Of a file that is downloaded.
FILE_BYTES = 1 << 30


class _Parent:
    """The other end, in the process."""

    def __init__(self) -> None:
        # Whatever prints must not be taken for a message.
        self._out = os.dup(1)
        os.dup2(2, 1)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.folder: str | None = None
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            self._lines.put(line)
        # Nobody is there any more who could want the rest, or tidy up.
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        os._exit(0)

    def receive(self) -> Any:
        """Wait for the next message."""
        return json.loads(self._lines.get())

    def send(self, message: Mapping[str, Any]) -> None:
        data = memoryview(dumps(message).encode() + b"\n")
        while data:
            data = data[os.write(self._out, data) :]

    def ask(self, name: str, argument: Any = None) -> Any:
        self.send({"ask": name, "argument": argument})
        return self.receive()["answer"]


def main() -> None:
    """Do what standard input asks for, until it ends."""
    parent = _Parent()
    start = parent.receive()
    parent.folder = start["folder"]
    settings = MlflowTracking.of(start["settings"])
    location = StoreLocation.of(settings.uri, Path(start["outputs"]))
    login = {name: os.environ[name] for name in (TOKEN, USERNAME, PASSWORD) if name in os.environ}
    store = MlflowStore(settings, location, login)
    with mlflow_environment(settings.timeout_s):
        import mlflow.tracking  # noqa: F401 - so that it does not count as what a server sent
    _bound_memory()
    parent.send({"ready": True})
    while True:
        request = parent.receive()
        try:
            parent.send({"result": _perform(store, request, parent)})
        except TrackingError as error:
            parent.send({"error": str(error)})


def _perform(store: MlflowStore, request: Mapping[str, Any], parent: _Parent) -> Any:
    arguments = request["arguments"]
    match request["verb"]:
        case "fetch":
            return str(store.fetch(arguments["run_id"], Path(arguments["into"])).path)
        case "write":
            content = _content(arguments["content"], request["answers"], parent)
            runs = [store.write(content)]
        case "write_comparison":
            runs = [store.write_comparison(_comparison(arguments, parent))]
        case verb:
            runs = getattr(store, verb)(**arguments)
    return [asdict(run) for run in runs]


def _content(plain: Mapping[str, Any], answers: Container[str], parent: _Parent) -> Content:
    def traces() -> Iterator[Trace]:
        with Path(parent.ask("traces", str(Path.cwd()))).open(encoding="utf-8") as file:
            for line in file:
                yield Trace(**json.loads(line))

    return Content(
        **plain,
        note=lambda: str(parent.ask("note")),
        report=(lambda folder: parent.ask("report", str(folder))) if "report" in answers else None,
        traces=traces if "traces" in answers else None,
    )


def _comparison(arguments: Mapping[str, Any], parent: _Parent) -> SweepComparison:
    return SweepComparison(
        sweep=arguments["sweep"],
        name=arguments["name"],
        runs=[RunDirectory(Path(path)) for path in arguments["runs"]],
        names=lambda: dict(parent.ask("names")),
        note=lambda addresses: str(parent.ask("note", addresses)),
        report=lambda folder: parent.ask("report", str(folder)),
    )


def _bound_memory() -> None:
    """Let a server's answers take so much and no more; only Linux can say what is taken."""
    import resource

    # Python ignores the signal, and the write fails.
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    try:
        status = Path("/proc/self/status").read_text()
        taken = next(line.split()[1] for line in status.splitlines() if line.startswith("VmData"))
    except (OSError, StopIteration):
        return
    most = (int(taken) << 10) + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


if __name__ == "__main__":
    main()
