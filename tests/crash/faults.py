"""What an operating system does to a run that goes on: no space, no handles, no directory."""

import os
import resource
import shutil
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path

from jevexp.backends.fake import Fake
from jevexp.harness.runner import RunContext
from jevexp.ledger.file import FileLedger
from jevexp.run import journal, running
from tests.crash.points import Count


def at_call(nth: int, happen: Callable[[], None]) -> Callable[[], None]:
    """Something that happens while the nth task is with the provider."""

    def prepare() -> None:
        calls = Count(nth)
        original = Fake.decide

        def decide(fake: Fake, *arguments: object) -> object:
            if calls.is_last():
                happen()
            return original(fake, *arguments)  # type: ignore[arg-type]

        setattr(Fake, "decide", decide)  # noqa: B010  mypy

    return prepare


def no_more_room() -> None:
    """No file can grow far beyond the results as they are, as on a disk that is almost full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = Path("run/results.jsonl").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, most))


def no_more_handles() -> None:
    """No file can be opened any more."""
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, most))


def directory_deleted() -> None:
    """Somebody tidies up."""
    shutil.rmtree("run")


def directory_replaced() -> None:
    """Somebody puts something else in its place."""
    Path("run").rename("moved")
    Path("run").mkdir()


def clock_runs_backwards() -> None:
    """Every look at the clock says a day less than the one before."""
    clock = count(1_800_000_000, -86_400)

    def now() -> float:
        return float(next(clock))

    assert FileLedger.__init__.__kwdefaults__ is not None
    FileLedger.__init__.__kwdefaults__["now"] = now
    setattr(running, "RunContext", partial(RunContext, now=now))  # noqa: B010
    setattr(journal, "_now", lambda: f"{datetime.fromtimestamp(now(), UTC):%FT%TZ}")  # noqa: B010
