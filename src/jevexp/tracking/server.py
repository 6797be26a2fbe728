"""MLflow's user interface as a child process, in the form that leaves memory for models."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, NoReturn

from jevexp.tracking.conversation import environment_for
from jevexp.tracking.place import Place
from jevexp.tracking.protocol import TrackingError
from jevexp.tracking.store import ask_health
from jevexp.untrusted.python import python_module, safe_environment

HOST = "127.0.0.1"
# It takes 4 s on an idle machine.
START_TIMEOUT_S = 90
STOP_TIMEOUT_S = 5
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # The queue of background jobs takes 13 more processes and 2 GB, and nothing here needs it.
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
}


@dataclass(frozen=True, slots=True)
class UserInterface:
    """A child that is starting, or answers at `address`."""

    address: str
    process: subprocess.Popen[bytes]
    output: IO[bytes]

    def wait_until_up(self) -> None:
        """Wait for the first answer.

        Raises:
            TrackingError: the child ended, or did not answer in time.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            if self.process.poll() is not None:
                raise TrackingError(self._ending())
            try:
                ask_health(self.address, timeout_s=1)
            except TrackingError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return

    def wait_until_over(self) -> NoReturn:
        """Wait until somebody interrupts us; for the child to end is an error.

        Raises:
            TrackingError: the child ended by itself.
        """
        self.process.wait()
        raise TrackingError(self._ending())

    def _ending(self) -> str:
        self.output.seek(0)
        said = self.output.read().decode(errors="replace").strip().splitlines() or [""]
        return f"mlflow ui ended with status {self.process.returncode}: {said[-1]}"


@contextmanager
def user_interface(place: Place, port: int) -> Iterator[UserInterface]:
    """Start the user interface of a database; it is ended on the way out."""
    # MLflow starts another Python, whose server looks for modules in its folder whatever we say.
    with TemporaryFile() as output, TemporaryDirectory() as folder, safe_environment():
        process = subprocess.Popen(
            _command(place, port),
            cwd=folder,
            env=environment_for(place, {}, folder) | ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # A group of its own: Ctrl-C reaches us alone, and we end all of it.
            start_new_session=True,
        )
        try:
            yield UserInterface(f"http://{HOST}:{port}", process, output)
        finally:
            _end(process)


def _command(place: Place, port: int) -> list[str]:
    command = [*python_module("mlflow"), "ui", "--backend-store-uri", place.uri]
    if place.artifacts:
        command += ["--artifacts-destination", place.artifacts]
    return [*command, "--host", HOST, "--port", str(port), "--workers", "1"]


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        pass
    finally:
        # Its worker outlives it now and then.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
