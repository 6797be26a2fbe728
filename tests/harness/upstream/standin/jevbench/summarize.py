"""The summary, by our own code."""

from typing import Any

from jevexp.core import record, task
from jevexp.harness.summary import summarize as ours

from .tasks import Task


def summarize(
    tasks: list[Task],
    records: list[dict[str, Any]],
    charged: float | None = 0.0,
    headline_only: bool = True,
) -> dict[str, Any]:
    del headline_only
    return ours(
        [task.Task.model_validate(vars(one)) for one in tasks],
        [record.Record.model_validate(one) for one in records],
        ledger_charged_usd=charged,
    ).plain()
