"""Which implementation of the benchmark's protocol runs the tasks: ours, or the pinned one."""

from collections.abc import Iterable, Sequence
from typing import Any

from jevexp.core.record import Record, Summary
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.harness.concurrent import ConcurrentRunner
from jevexp.harness.runner import RunContext, Runner
from jevexp.harness.summary import summarize
from jevexp.harness.upstream import Upstream
from jevexp.harness.upstream_package import find, load
from jevexp.settings import PINNED_COMMIT
from jevexp.settings import Harness as HarnessSettings


class Native:
    """jevexp's own implementation of the protocol at the pin."""

    def __init__(self, concurrency: int = 1) -> None:
        self._concurrency = concurrency

    def describe(self) -> dict[str, Any]:
        """Its name, and the commit whose protocol it follows, for the manifest."""
        return {"name": "native", "commit": PINNED_COMMIT}

    def check(self, tasks: Sequence[Task]) -> None:
        """Accept every loaded task."""

    def runner(self, run: RunContext) -> Runner | ConcurrentRunner:
        """Our runner, which follows the protocol to the letter at a concurrency of 1."""
        if self._concurrency == 1:
            return Runner(run)
        return ConcurrentRunner(run, concurrency=self._concurrency)

    def summarize(
        self, tasks: Sequence[Task], records: Iterable[Record], *, ledger_charged_usd: float | None
    ) -> Summary:
        """Our summary; raises ValueError as `jevexp.harness.summary.summarize`."""
        return summarize(tasks, records, ledger_charged_usd=ledger_charged_usd)


Harness = Native | Upstream


def make_harness(settings: HarnessSettings, *, concurrency: int = 1) -> Harness:
    """The configured harness, which has up to `concurrency` requests under way.

    Raises InputError: the pinned one is chosen and is not here, or is to ask several at once.
    """
    if settings.name == "native":
        return Native(concurrency)
    if concurrency > 1:
        raise InputError(
            "runner.concurrency: the pinned harness asks one task at a time; set "
            "runner.concurrency=1, or harness=native"
        )
    return Upstream(load(find(settings.path)))
