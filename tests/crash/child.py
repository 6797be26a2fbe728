"""jevexp's own command line in a child process that is killed, and what it had done until then."""

import os
import secrets
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jevexp.cli import compose as compose_module
from jevexp.cli.main import main
from jevexp.datasets import load_dataset
from tests.crash.points import POINTS, Count, key, watch
from tests.support.compose import compose


@dataclass(frozen=True)
class Kill:
    """A named point and the call at which to die; or, without a point, a time in seconds."""

    point: str | None = None
    nth: int = 1
    after_s: float | None = None

    @property
    def name(self) -> str:
        """For tables."""
        return self.point or "at a random time"


@dataclass
class Log:
    """What children noted: how often each task was asked, and which answers were put aside."""

    path: Path
    asked: Counter[str] = field(default_factory=Counter)
    held: set[str] = field(default_factory=set)
    asked_again: list[str] = field(default_factory=list)

    def read(self) -> "Log":
        """Take in the file, from its start."""
        self.asked, self.held, self.asked_again = Counter(), set(), []
        for line in self.path.read_text().splitlines() if self.path.exists() else ():
            word, _, task_id = line.partition(" ")
            if word == "held":
                self.held.add(task_id)
            else:
                self.asked[task_id] += 1
                self.asked_again += [task_id] if task_id in self.held else []
        return self


@dataclass(frozen=True)
class Child:
    """A process that runs the program, forked so that it need not import everything again."""

    pid: int

    def wait(self, kill: Kill | None = None) -> int:
        """Wait for its end, killing it after the kill's time; minus the signal, or the status."""
        if kill is not None and kill.after_s is not None:
            time.sleep(kill.after_s)
            os.kill(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


NAMES: dict[str, str] = {}


def start(
    arguments: Sequence[str],
    log: Path,
    kill: Kill | None = None,
    prepare: Callable[[], None] = lambda: None,
) -> Child:
    """Start `jevexp ARGUMENTS` in the present folder; what it prints goes into `LOG.out`.

    Args:
        arguments: the command line.
        log: where the child notes what it does.
        kill: how it dies.
        prepare: called in the child first.
    """
    if not NAMES:
        tasks = load_dataset(compose("dataset=demo").dataset).tasks
        NAMES.update({key(task.state, task.question.wire()): task.id for task in tasks})
    with warnings.catch_warnings():
        # Python 3.12 warns of threads that may hold a lock; those of pytest hold none of ours.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _run(lambda: _in_child(arguments, log, kill, prepare))
    return Child(pid)


def _run(body: Callable[[], int]) -> None:
    status = 70
    try:
        status = body()
    except BaseException:  # noqa: BLE001  nothing may return into the parent's code
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _in_child(
    arguments: Sequence[str], log: Path, kill: Kill | None, prepare: Callable[[], None]
) -> int:
    printed = os.open(f"{log}.out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, signal.default_int_handler)
    # Made once a process, which a fork does not count as.
    compose_module._LAUNCH_UID = secrets.token_hex(3)
    if kill is not None and kill.point is not None:
        arm, _ = POINTS[kill.point]
        arm(Count(kill.nth))
    prepare()
    watch(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644), NAMES)
    return main(arguments)
