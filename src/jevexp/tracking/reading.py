"""Finds runs that were logged earlier."""

from collections.abc import Iterator
from typing import Any

from jevexp.tracking.protocol import TrackedRun
from jevexp.tracking.tags import DATASET_HASH, KIND, RUN, SWEEP, TRACES

# More do not fit on a screen side by side.
NEWEST = 10
NEWEST_FIRST = ["attributes.start_time DESC"]
OLDEST_FIRST = ["attributes.start_time ASC"]
# MLflow answers in pages; so many runs fit on one.
PAGE = 1000


def find_runs(client: Any, experiment_id: str, sweep: str | None) -> list[TrackedRun]:
    """The runs of a sweep, oldest first.

    Without a sweep: those of the sweep that ran last, or, if the newest run has none, the newest
    runs on the same tasks.
    """
    if sweep is None:
        found = client.search_runs(
            [experiment_id], f"tags.`{KIND}` = 'run'", order_by=NEWEST_FIRST, max_results=NEWEST
        )
        newest = list(found)
        sweep = newest[0].data.tags.get(SWEEP) if newest else None
        if sweep is None:
            return [tracked(run) for run in reversed(_on_the_same_tasks(newest))]
    return select_runs(client, experiment_id, f"tags.`{SWEEP}` = {quoted(sweep)}")


def select_runs(client: Any, experiment_id: str, where: str) -> list[TrackedRun]:
    """All runs of an experiment that a filter in MLflow's language selects, oldest first.

    What describes several runs, such as a comparison, is no run.
    """
    found = _search(client, experiment_id, where)
    return [tracked(run) for run in found if run.data.tags.get(KIND) == "run"]


def quoted(name: str) -> str:
    """A name as a text of the filter's; either quote may be part of what people call a sweep."""
    quote = '"' if "'" in name else "'"
    return f"{quote}{name}{quote}"


def tracked(run: Any) -> TrackedRun:
    """A run of MLflow's as the rest of jevexp knows it."""
    return TrackedRun(
        run_id=run.info.run_id,
        experiment_id=run.info.experiment_id,
        name=run.info.run_name,
        directory=run.data.tags.get(RUN, ""),
        traced=TRACES in run.data.tags,
    )


def _search(client: Any, experiment_id: str, where: str) -> Iterator[Any]:
    token = None
    while True:
        page = client.search_runs(
            [experiment_id], where, order_by=OLDEST_FIRST, max_results=PAGE, page_token=token
        )
        yield from page
        token = page.token
        if not token:
            return


def _on_the_same_tasks(newest: list[Any]) -> list[Any]:
    tasks = {run.data.tags.get(DATASET_HASH) for run in newest[:1]}
    return [run for run in newest if run.data.tags.get(DATASET_HASH) in tasks]
