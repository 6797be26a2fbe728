"""Summaries as their file holds them, which is what tests look at."""

from collections.abc import Iterable
from typing import Any

from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness import summary


def summarize(
    tasks: Iterable[Task], records: Iterable[Record], *, ledger_charged_usd: float | None = None
) -> dict[str, Any]:
    """The summary as plain JSON."""
    return summary.summarize(tasks, records, ledger_charged_usd=ledger_charged_usd).plain()
