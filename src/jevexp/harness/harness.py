"""Which implementation of the benchmark's protocol runs the tasks: ours, or the pinned one."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from jevexp.core.record import Record
from jevexp.core.summary import Summary
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.harness.concurrent import ConcurrentRunner
from jevexp.harness.runner import Runner, TaskRunner
from jevexp.harness.steps import RunContext
from jevexp.harness.summary import summarize
from jevexp.settings import PINNED_COMMIT
from jevexp.settings import Harness as HarnessSettings


class Harness(Protocol):
    """An implementation of the benchmark's protocol."""

    def describe(self) -> dict[str, Any]:
        """What the manifest says about it."""

    def check(self, tasks: Sequence[Task]) -> None:
        """Look at the tasks that it would be given.

        Raises:
            InputError: it refuses one; names that.
        """

    def runner(self, run: RunContext) -> TaskRunner:
        """A runner over an open provider."""

    def summarize(
        self, tasks: Sequence[Task], records: Iterable[Record], *, ledger_charged_usd: float | None
    ) -> Summary:
        """What the records come to.

        Raises:
            ValueError: a task has two records, or a record belongs to no planned task.
        """


def make_harness(settings: HarnessSettings, *, concurrency: int = 1) -> Harness:
    """The configured harness, which has up to `concurrency` requests under way.

    Raises:
        InputError: the pinned one is chosen and is not here, or is to ask several at once.
    """
    if settings.name == "native":
        return Native(concurrency)
    if concurrency > 1:
        raise InputError(
            "runner.concurrency: the pinned harness asks one task at a time; set "
            "runner.concurrency=1, or harness=native"
        )
    from jevexp.harness.upstream import make_upstream

    return make_upstream(settings.path)


class Native:
    """jevexp's own implementation of the protocol at the pin."""

    def __init__(self, concurrency: int = 1) -> None:
        self._concurrency = concurrency

    def describe(self) -> dict[str, Any]:
        """Its name, and the commit whose protocol it follows."""
        return {"name": "native", "commit": PINNED_COMMIT}

    def check(self, tasks: Sequence[Task]) -> None:
        """A task that was loaded is one."""

    def runner(self, run: RunContext) -> TaskRunner:
        """Our runner, which follows the protocol to the letter at a concurrency of 1."""
        if self._concurrency == 1:
            return Runner(run)
        return ConcurrentRunner(run, concurrency=self._concurrency)

    def summarize(
        self, tasks: Sequence[Task], records: Iterable[Record], *, ledger_charged_usd: float | None
    ) -> Summary:
        """Our summary."""
        return summarize(tasks, records, ledger_charged_usd=ledger_charged_usd)
