"""MLflow in a process of its own, for stores that another machine may be behind.

MLflow's client waits for each single byte and takes as many as come. In here a server that drips or
floods costs a bounded time and memory, and a signal ends it at once. The process gets an
environment of its own, with one login: that of the address that the person named.

Both sides write one JSON text a line. We ask for one of `MlflowStore`'s methods; before its result
comes, the process may ask for what is made only if it is needed, such as a report.
"""

import json
import os
import queue
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from pathlib import Path
from types import FrameType
from typing import Any

from jevexp.core.json import dumps
from jevexp.settings import Tracking
from jevexp.store import RunDirectory
from jevexp.tracking.content import Content, DatasetInput
from jevexp.tracking.conversation import PASSWORD, TOKEN, USERNAME, conversation, environment_for
from jevexp.tracking.place import Place
from jevexp.tracking.protocol import Change, SweepComparison, TrackedRun, TrackingError
from jevexp.tracking.store import MlflowStore
from jevexp.tracking.traces import Trace
from jevexp.untrusted.python import python_module

# Importing MLflow takes 2 s on an idle machine.
START_S = 120.0
# A call is several requests, each of which may take `tracking.timeout_s`.
REQUESTS_WORTH = 6
# What is sent takes its time as well: so long at 1 Mbit/s, and for each trace.
SECONDS_A_BYTE = 8e-6
SECONDS_A_TRACE = 0.25
# What the process may take beyond MLflow itself, for what a server sends.
MEMORY_BYTES = 512 << 20
# Of a file that is downloaded.
FILE_BYTES = 1 << 30
# Of an answer of ours, which lists runs at most.
_MOST_ANSWER_BYTES = 64 << 20
_TICK_S = 0.1
_LAZY = ("note", "report", "traces")

Answers = Mapping[str, Callable[[Path], Any]]


class ChildStore:
    """As `MlflowStore`, with the same methods and errors, in a process of its own.

    The process is started by the first call, and ends with this object.
    """

    def __init__(self, settings: Tracking, place: Place, login: Mapping[str, str]) -> None:
        self._settings = settings
        self._place = place
        self._login = login
        self._process: _Process | None = None
        self._closed: TrackingError | None = None
        self._signals: list[int] = []

    def write(self, content: Content) -> TrackedRun:
        """Log a run; once, however often it is called."""
        sent = sum(_size(path) for path in (*content.files, *_files(content.raw)))
        rows = len(content.table.get("data", ())) if content.traces else 0
        answers: dict[str, Callable[[Path], Any]] = {"note": lambda _: content.note()}
        if (report := content.report) is not None:
            answers["report"] = report
        if (traces := content.traces) is not None:
            answers["traces"] = lambda folder: _write_lines(folder / "traces", traces())
        found = self._call(
            "write", {"content": _plain(content)}, answers, sent * SECONDS_A_BYTE + _traced_s(rows)
        )
        return _tracked(found)

    def write_comparison(self, comparison: SweepComparison) -> TrackedRun:
        """Log the comparison of a sweep; once, however often it is called."""
        answers: Answers = {
            "names": lambda _: dict(comparison.names()),
            "note": lambda _: comparison.note(),
            "report": comparison.report,
        }
        runs = [str(directory.path.absolute()) for directory in comparison.runs]
        arguments = {"sweep": comparison.sweep, "name": comparison.name, "runs": runs}
        return _tracked(self._call("write_comparison", arguments, answers))

    def find_runs(self, sweep: str | None) -> list[TrackedRun]:
        """The runs of a sweep, or the newest ones."""
        return [_tracked(run) for run in self._call("find_runs", {"sweep": sweep})]

    def find_comparison(self, run: TrackedRun) -> list[TrackedRun]:
        """The comparison of the sweep that a run belongs to."""
        return [_tracked(one) for one in self._call("find_comparison", {"run": asdict(run)})]

    def select(self, where: str) -> list[TrackedRun]:
        """The runs that a filter selects."""
        return [_tracked(run) for run in self._call("select", {"where": where})]

    def fetch(self, run_id: str, into: Path) -> RunDirectory:
        """A run's directory, or a copy of what is needed of it."""
        arguments = {"run_id": run_id, "into": str(into.absolute())}
        return RunDirectory(Path(self._call("fetch", arguments)))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Meanwhile, a stop signal that only sets a flag elsewhere also ends what is asked here."""
        previous: dict[int, Callable[[int, FrameType | None], Any]] = {}

        def receive(signum: int, frame: FrameType | None) -> None:
            self._signals.append(signum)
            previous[signum](signum, frame)

        if threading.current_thread() is threading.main_thread():
            for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if callable(handler := signal.getsignal(signum)):
                    previous[signum] = handler
                    signal.signal(signum, receive)
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
            self._signals.clear()

    def _call(
        self,
        verb: str,
        arguments: Mapping[str, Any],
        answers: Answers | None = None,
        extra_s: float = 0.0,
    ) -> Any:
        if self._closed is not None:
            raise self._closed
        seconds = REQUESTS_WORTH * self._settings.timeout_s + extra_s
        try:
            return self._converse(verb, arguments, answers or {}, seconds)
        except _Ended as error:
            # Asking it again would cost every further run the same.
            self._closed = TrackingError(f"{self._place.uri}: {error}")
            raise self._closed from error
        except BaseException as error:
            if not isinstance(error, TrackingError):
                self._end()
            raise

    def _converse(
        self, verb: str, arguments: Mapping[str, Any], answers: Answers, seconds: float
    ) -> Any:
        with self.watching():
            process = self._started()
            process.send({"verb": verb, **arguments, "answers": sorted(answers)})
            deadline = time.monotonic() + seconds
            while True:
                message = process.receive(deadline, self._signals, seconds)
                if "result" in message:
                    return message["result"]
                if "error" in message:
                    raise TrackingError(message["error"])
                began = time.monotonic()
                process.send({"answer": self._answer(answers, message)})
                deadline += time.monotonic() - began

    def _answer(self, answers: Answers, message: Mapping[str, Any]) -> Any:
        try:
            return answers[message["ask"]](Path(message["folder"]))
        except Exception as error:
            self._end()
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise TrackingError(f"{message['ask']}: {reason}") from error

    def _started(self) -> "_Process":
        if self._process is None:
            self._process = process = _Process(self._place, self._login)
            weakref.finalize(self, process.end)
            settings = self._settings.model_dump(mode="json")
            outputs = self._place.lock.parent if self._place.lock else Path.cwd()
            process.send({"settings": settings, "outputs": str(outputs), "folder": process.folder})
            process.receive(time.monotonic() + START_S, self._signals, START_S)
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


class _Ended(Exception):
    """The process was ended, or ended by itself."""


class _Process:
    """The process, its pipes, and the folder that is all the home it has."""

    def __init__(self, place: Place, login: Mapping[str, str]) -> None:
        self.folder = tempfile.mkdtemp(prefix="jevexp-mlflow-")
        environment = environment_for(place, login, self.folder) | {"TMPDIR": self.folder}
        self._process = subprocess.Popen(
            python_module("jevexp.tracking.child"),
            cwd=self.folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # What MLflow says there could hold anything.
            stderr=subprocess.DEVNULL,
            bufsize=0,
            # Signals of a terminal reach us alone.
            start_new_session=True,
        )
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        assert self._process.stdout is not None  # noqa: S101 - for the type checker
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdin.fileno(), False)
        os.set_blocking(self._stdout.fileno(), False)
        self._unsent = bytearray()
        self._received = bytearray()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message with the next `receive`."""
        self._unsent += dumps(message).encode() + b"\n"

    def receive(self, deadline: float, signals: list[int], seconds: float) -> dict[str, Any]:
        """Wait for a message.

        Args:
            deadline: until when, on the monotonic clock.
            signals: those that have arrived; any one ends the waiting.
            seconds: how long that was, for the message.

        Raises:
            _Ended: none came in time; the process is gone.
        """
        while (end := self._received.find(b"\n")) < 0:
            if signals:
                self.end()
                raise _Ended(f"put off, since {signal.Signals(signals[0]).name} arrived")
            if time.monotonic() >= deadline:
                self.end()
                raise _Ended(f"not done within {seconds:.3g} s")
            if len(self._received) > _MOST_ANSWER_BYTES:
                self.end()
                raise _Ended("has more to say than can be taken")
            self._step()
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        message: dict[str, Any] = json.loads(line)
        return message

    def _step(self) -> None:
        """Move what can be moved, and wait for a moment where nothing can."""
        writing = [self._stdin] if self._unsent else []
        readable, writable, _ = select.select([self._stdout], writing, [], _TICK_S)
        if writable:
            with suppress(BrokenPipeError, BlockingIOError):
                sent = os.write(self._stdin.fileno(), self._unsent[: 1 << 16])
                del self._unsent[:sent]
        if readable:
            data = os.read(self._stdout.fileno(), 1 << 16)
            if not data:
                status = self.end()
                raise _Ended(f"MLflow's own process ended with status {status}")
            self._received += data

    def end(self) -> int:
        """End the process at once, and remove its folder; its exit status."""
        status = self._process.poll()
        if status is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            status = self._process.wait()
        self._stdin.close()
        self._stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        return status


def _plain(content: Content) -> dict[str, Any]:
    values = {field.name: getattr(content, field.name) for field in fields(content)}
    return {name: value for name, value in values.items() if name not in _LAZY} | {
        "dataset": asdict(content.dataset),
        "files": [str(path.absolute()) for path in content.files],
        "raw": content.raw and str(content.raw.absolute()),
    }


def _tracked(found: Mapping[str, Any]) -> TrackedRun:
    return TrackedRun(**(dict(found) | {"change": Change(found["change"])}))


def _files(folder: Path | None) -> Iterable[Path]:
    return folder.iterdir() if folder is not None else ()


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _traced_s(count: int) -> float:
    return count * SECONDS_A_TRACE


def _write_lines(path: Path, traces: Iterator[Trace]) -> str:
    with path.open("x", encoding="utf-8") as file:
        file.writelines(f"{dumps(asdict(trace))}\n" for trace in traces)
    return str(path)


class _Parent:
    """The other end, in the process."""

    def __init__(self) -> None:
        # Whatever prints must not be taken for a message.
        self._out = os.dup(1)
        os.dup2(2, 1)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._folder: str | None = None
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            self._lines.put(line)
        # Nobody is there any more who could want the rest, or tidy up.
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        os._exit(0)

    def start(self) -> dict[str, Any]:
        """The first message, which says what is asked, and whose folder this is."""
        message = self.receive()
        self._folder = message["folder"]
        return message

    def receive(self) -> dict[str, Any]:
        """Wait for the next message."""
        message: dict[str, Any] = json.loads(self._lines.get())
        return message

    def send(self, message: Mapping[str, Any]) -> None:
        data = memoryview(dumps(message).encode() + b"\n")
        while data:
            data = data[os.write(self._out, data) :]

    def ask(self, name: str, folder: Path) -> Any:
        self.send({"ask": name, "folder": str(folder)})
        return self.receive()["answer"]


def main() -> None:
    """Do what standard input asks for, until it ends."""
    parent = _Parent()
    start = parent.start()
    settings = Tracking.of(start["settings"])
    place = Place.of(settings.uri, Path(start["outputs"]))
    login = {name: os.environ[name] for name in (TOKEN, USERNAME, PASSWORD) if name in os.environ}
    store = MlflowStore(settings, place, login)
    with conversation(settings.timeout_s):
        import mlflow.tracking  # noqa: F401 - so that it does not count as what a server sent
    _bound_memory()
    parent.send({"ready": True})
    while True:
        request = parent.receive()
        try:
            parent.send({"result": _perform(store, request, parent)})
        except TrackingError as error:
            parent.send({"error": str(error)})


def _perform(store: MlflowStore, request: dict[str, Any], parent: _Parent) -> Any:
    match request["verb"]:
        case "write":
            return asdict(store.write(_content(request, parent)))
        case "write_comparison":
            return asdict(store.write_comparison(_comparison(request, parent)))
        case "find_runs":
            return [asdict(run) for run in store.find_runs(request["sweep"])]
        case "find_comparison":
            run = _tracked(request["run"])
            return [asdict(found) for found in store.find_comparison(run)]
        case "select":
            return [asdict(run) for run in store.select(request["where"])]
        case "fetch":
            return str(store.fetch(request["run_id"], Path(request["into"])).path)


def _content(request: dict[str, Any], parent: _Parent) -> Content:
    plain, answers = request["content"], request["answers"]
    return Content(
        **plain
        | {
            "dataset": DatasetInput(**plain["dataset"]),
            "files": tuple(map(Path, plain["files"])),
            "raw": Path(plain["raw"]) if plain["raw"] else None,
        },
        note=lambda: str(parent.ask("note", Path.cwd())),
        report=(lambda folder: parent.ask("report", folder)) if "report" in answers else None,
        traces=(lambda: _traces(parent)) if "traces" in answers else None,
    )


def _traces(parent: _Parent) -> Iterator[Trace]:
    with Path(parent.ask("traces", Path.cwd())).open(encoding="utf-8") as file:
        for line in file:
            yield Trace(**json.loads(line))


def _comparison(request: dict[str, Any], parent: _Parent) -> SweepComparison:
    return SweepComparison(
        sweep=request["sweep"],
        name=request["name"],
        runs=[RunDirectory(Path(path)) for path in request["runs"]],
        names=lambda: dict(parent.ask("names", Path.cwd())),
        note=lambda: str(parent.ask("note", Path.cwd())),
        report=lambda folder: parent.ask("report", folder),
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
