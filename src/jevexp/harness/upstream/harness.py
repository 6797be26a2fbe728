"""The pinned harness as a choice of the harness group."""

from collections.abc import Iterable, Sequence
from typing import Any

from jevexp.core.json import dumps, loads
from jevexp.core.record import Record
from jevexp.core.summary import Summary
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.harness.runner import TaskRunner
from jevexp.harness.steps import RunContext
from jevexp.harness.upstream.find import find
from jevexp.harness.upstream.package import Package, load
from jevexp.harness.upstream.runner import UpstreamRunner, their_tasks
from jevexp.ledger import FileLedger
from jevexp.settings import PINNED_COMMIT


def make_upstream(path: str | None) -> "Upstream":
    """The pinned harness: the installed package, or the checkout at `path`.

    Raises:
        InputError: there is none at the pinned commit; says what was found instead.
    """
    return Upstream(load(find(path)))


class Upstream:
    """The pinned harness's Runner, Ledger, tasks and summary, from its own package."""

    def __init__(self, package: Package) -> None:
        self._package = package

    def describe(self) -> dict[str, Any]:
        """Its name, its commit, and whether it is installed or a checkout."""
        origin = self._package.location.origin
        return {"name": "upstream", "commit": PINNED_COMMIT, "origin": origin}

    def check(self, tasks: Sequence[Task]) -> None:
        """Make its own tasks of ours, which checks them again.

        Raises:
            InputError: it refuses one; names that.
        """
        their_tasks(self._package, tasks)

    def runner(self, run: RunContext) -> TaskRunner:
        """Its runner, around one of our backends.

        Raises:
            InputError: the ledger is not a file.
        """
        if not isinstance(run.ledger, FileLedger):
            raise InputError("caps.ledger_url: the pinned harness keeps its ledger in a file")
        return UpstreamRunner(self._package, run, run.ledger)

    def summarize(
        self, tasks: Sequence[Task], records: Iterable[Record], *, ledger_charged_usd: float | None
    ) -> Summary:
        """Its summary."""
        summary = self._package.summarize(
            their_tasks(self._package, tasks),
            [record.line() for record in records],
            ledger_charged_usd,
        )
        return Summary.model_validate(loads(dumps(summary)))
