"""Finds runs that were logged earlier."""

from typing import Any

from jevexp.tracking.protocol import TrackedRun
from jevexp.tracking.tags import DATASET_HASH, KIND, RUN, SWEEP

# More do not fit on a screen side by side.
NEWEST = 10
NEWEST_FIRST = ["attributes.start_time DESC"]


def find_runs(client: Any, experiment_id: str, sweep: str | None) -> list[TrackedRun]:
    """The runs of a sweep, oldest first.

    Without a sweep: those of the sweep that ran last, or, if the newest run has none, the newest
    runs on the same tasks.
    """
    if sweep is None:
        newest = _search(client, experiment_id, f"tags.`{KIND}` = 'run'", NEWEST)
        sweep = newest[0].data.tags.get(SWEEP) if newest else None
        if sweep is None:
            return [_tracked(run) for run in reversed(_on_the_same_tasks(newest))]
    # A sweep is called as somebody called its directory; either quote may be part of that.
    quote = '"' if "'" in sweep else "'"
    found = _search(client, experiment_id, f"tags.`{SWEEP}` = {quote}{sweep}{quote}", 1000)
    return [_tracked(run) for run in reversed(found)]


def _search(client: Any, experiment_id: str, where: str, limit: int) -> list[Any]:
    found = client.search_runs([experiment_id], where, order_by=NEWEST_FIRST, max_results=limit)
    return list(found)


def _on_the_same_tasks(newest: list[Any]) -> list[Any]:
    tasks = {run.data.tags.get(DATASET_HASH) for run in newest[:1]}
    return [run for run in newest if run.data.tags.get(DATASET_HASH) in tasks]


def _tracked(run: Any) -> TrackedRun:
    return TrackedRun(
        run_id=run.info.run_id,
        experiment_id=run.info.experiment_id,
        name=run.info.run_name,
        directory=run.data.tags.get(RUN, ""),
    )
