"""Many processes that log finished runs at once."""

import multiprocessing
from collections.abc import Sequence
from pathlib import Path

from jevexp.settings import Tracking
from jevexp.store import RunDirectory
from jevexp.tracking import TrackingError
from jevexp.tracking.mlflow import MlflowTracker
from tests.support.runs import noul_tasks

TASKS = noul_tasks(4)


def log_runs(runs: Sequence[Path], settings: Tracking) -> list[str]:
    """Log run directories one after the other; what each attempt came to, in a word or a line."""
    tracker = MlflowTracker(settings, runs[0].parent)
    said = []
    for run in runs:
        try:
            said.append(tracker.log(RunDirectory(run), TASKS).change.value)
        except TrackingError as error:
            said.append(str(error))
    return said


def log_from_workers(runs: Sequence[Path], settings: Tracking, workers: int) -> list[str]:
    """Log run directories from several processes, each its share of them."""
    # MLflow is imported once for all of them, in a process that has opened nothing yet.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mlflow"])
    with context.Pool(workers) as pool:
        shares = [(runs[number::workers], settings) for number in range(workers)]
        return [word for said in pool.starmap(log_runs, shares) for word in said]
