"""MLflow in a process of its own, for stores that another machine may be behind.

MLflow's client waits for each single byte and takes as many as come. In here a server that drips or
floods costs a bounded time and memory, and a signal ends it at once. The process gets an
environment of its own, with one login: that of the address that the person named.

Both sides write one JSON text a line. We ask for one of `MlflowStore`'s methods; before its result
comes, the process may ask for what is made only if it is needed, such as a report.
"""

import json
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from pathlib import Path
from types import FrameType
from typing import Any

from pydantic import TypeAdapter

from jevexp.core.json import dumps
from jevexp.settings import MlflowTracking
from jevexp.store import RunDirectory
from jevexp.tracking import SweepComparison, TrackedRun, TrackingError
from jevexp.tracking.mlflow.content import Content, Trace
from jevexp.tracking.mlflow.environment import environment_for
from jevexp.tracking.mlflow.location import StoreLocation
from jevexp.untrusted.python import python_module
from jevexp.untrusted.writing import create, write_all

# Importing MLflow takes 2 s on an idle machine.
START_S = 120.0
# A call is several requests, each of which may take `tracking.timeout_s`.
REQUESTS_WORTH = 6
# What is sent takes its time as well: so long at 1 Mbit/s, and for each trace.
SECONDS_A_BYTE = 8e-6
SECONDS_A_TRACE = 0.25
# Of an answer of ours, which lists runs at most.
_MOST_ANSWER_BYTES = 64 << 20
_TICK_S = 0.1
_LAZY = ("note", "report", "traces")
_RUNS = TypeAdapter(list[TrackedRun])
# Each gets what the process says with its question: a folder to write into, or addresses.
Answers = Mapping[str, Callable[[Any], Any]]


class ChildStore:
    """As `MlflowStore`, with the same methods and errors, in a process of its own.

    The process is started by the first call, and ends with this object.
    """

    def __init__(
        self, settings: MlflowTracking, location: StoreLocation, login: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._location = location
        self._login = login
        self._process: _Process | None = None
        self._closed: TrackingError | None = None
        self._signals: list[int] = []

    def write(self, content: Content) -> TrackedRun:
        """Log a run; once, however often it is called."""
        plain = {f.name: getattr(content, f.name) for f in fields(content) if f.name not in _LAZY}
        answers: dict[str, Callable[[Any], Any]] = {"note": lambda _: content.note()}
        if (report := content.report) is not None:
            answers["report"] = lambda folder: report(Path(folder))
        sent = [*map(Path, content.files), *(Path(content.raw).iterdir() if content.raw else ())]
        extra_s = sum(map(_size, sent)) * SECONDS_A_BYTE
        if (traces := content.traces) is not None:
            answers["traces"] = lambda folder: _write_lines(Path(folder) / "traces", traces())
            extra_s += len(content.table["data"]) * SECONDS_A_TRACE
        return self._runs("write", {"content": plain}, answers, extra_s)[0]

    def write_comparison(self, comparison: SweepComparison) -> TrackedRun:
        """Log the comparison of a sweep; once, however often it is called."""
        answers: Answers = {
            "names": lambda _: dict(comparison.names()),
            "note": comparison.note,
            "report": lambda folder: comparison.report(Path(folder)),
        }
        runs = [str(directory.path.absolute()) for directory in comparison.runs]
        arguments = {"sweep": comparison.sweep, "name": comparison.name, "runs": runs}
        return self._runs("write_comparison", arguments, answers)[0]

    def find_runs(self, sweep: str | None) -> list[TrackedRun]:
        """The runs of a sweep, or the newest ones."""
        return self._runs("find_runs", {"sweep": sweep})

    def find_comparison(self, run_id: str) -> list[TrackedRun]:
        """The comparison of the sweep that a run belongs to."""
        return self._runs("find_comparison", {"run_id": run_id})

    def select(self, where: str) -> list[TrackedRun]:
        """The runs that a filter selects."""
        return self._runs("select", {"where": where})

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

    def _runs(self, *call: Any) -> list[TrackedRun]:
        return _RUNS.validate_python(self._call(*call))

    def _call(
        self,
        verb: str,
        arguments: Mapping[str, Any],
        answers: Answers | None = None,
        extra_s: float = 0.0,
    ) -> Any:
        if self._closed is not None:
            raise self._closed
        answers = answers or {}
        seconds = REQUESTS_WORTH * self._settings.timeout_s + extra_s
        try:
            with self.watching():
                process = self._started()
                process.send({"verb": verb, "arguments": arguments, "answers": sorted(answers)})
                deadline = time.monotonic() + seconds
                while True:
                    message = process.receive(deadline, seconds)
                    if "result" in message:
                        return message["result"]
                    if "error" in message:
                        raise TrackingError(message["error"])
                    began = time.monotonic()
                    process.send({"answer": self._answer(answers, message)})
                    deadline += time.monotonic() - began
        except _Ended as error:
            # Asking it again would cost every further run the same.
            self._closed = TrackingError(f"{self._location.uri}: {error}")
            raise self._closed from error
        except BaseException as error:
            if not isinstance(error, TrackingError):
                self._end()
            raise

    def _answer(self, answers: Answers, message: Mapping[str, Any]) -> Any:
        try:
            return answers[message["ask"]](message["argument"])
        except Exception as error:
            self._end()
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise TrackingError(f"{message['ask']}: {reason}") from error

    def _started(self) -> "_Process":
        if self._process is None:
            self._process = process = _Process(self._location, self._login, self._signals)
            weakref.finalize(self, process.end)
            settings = self._settings.model_dump(mode="json", exclude={"also"})
            outputs = self._location.lock.parent if self._location.lock else Path.cwd()
            process.send({"settings": settings, "outputs": str(outputs), "folder": process.folder})
            process.receive(time.monotonic() + START_S, START_S)
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


class _Ended(Exception):
    """The process was ended, or ended by itself."""


class _Process:
    """The process, its pipes, and the folder that is all the home it has.

    `signals` are those that have arrived; any one ends the waiting.
    """

    def __init__(
        self, location: StoreLocation, login: Mapping[str, str], signals: list[int]
    ) -> None:
        self.folder = tempfile.mkdtemp(prefix="jevexp-mlflow-")
        self._signals = signals
        self._process = subprocess.Popen(
            python_module("jevexp.tracking.mlflow.child_process"),
            cwd=self.folder,
            env=environment_for(location, login, self.folder) | {"TMPDIR": self.folder},
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

    def receive(self, deadline: float, seconds: float) -> Any:
        """Wait for a message until `deadline` on the monotonic clock, `seconds` from the call.

        Raises _Ended: none came in time; the process is gone.
        """
        while (end := self._received.find(b"\n")) < 0:
            if self._signals:
                raise self._ended(f"put off, since {signal.Signals(self._signals[0]).name} arrived")
            if time.monotonic() >= deadline:
                raise self._ended(f"not done within {seconds:.3g} s")
            if len(self._received) > _MOST_ANSWER_BYTES:
                raise self._ended("has more to say than can be taken")
            self._step()
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return json.loads(line)

    def _step(self) -> None:
        """Move what can be moved, and wait for a moment where nothing can."""
        # Not `select.select`, which takes no descriptor above 1023.
        waiting = selectors.PollSelector()
        waiting.register(self._stdout, selectors.EVENT_READ)
        if self._unsent:
            waiting.register(self._stdin, selectors.EVENT_WRITE)
        ready = {key.fileobj for key, _ in waiting.select(_TICK_S)}
        if self._stdin in ready:
            with suppress(BrokenPipeError, BlockingIOError):
                sent = os.write(self._stdin.fileno(), self._unsent[: 1 << 16])
                del self._unsent[:sent]
        if self._stdout in ready:
            data = os.read(self._stdout.fileno(), 1 << 16)
            if not data:
                raise _Ended(f"MLflow's own process ended with status {self.end()}")
            self._received += data

    def _ended(self, reason: str) -> _Ended:
        self.end()
        return _Ended(reason)

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


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _write_lines(path: Path, traces: Iterator[Trace]) -> str:
    with create(path) as file:
        for trace in traces:
            write_all(file, f"{dumps(asdict(trace))}\n".encode())
    return str(path)
