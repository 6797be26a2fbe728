"""Addresses inside MLflow's user interface: its front page shows little of an experiment."""

import json
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from jevexp.tracking import TrackedRun

DEFAULT_PORT = 5000
# The user interface for runs and metrics; MLflow starts with the one for chats.
CLASSIC = "workflowType=machine_learning"


def make_links(
    base: str, runs: Sequence[TrackedRun], comparisons: Sequence[TrackedRun] = ()
) -> Iterator[tuple[str, str]]:
    """Labels and addresses for at least one run of one experiment.

    They are the run itself where it is single, the runs of the experiment, the metrics of these
    runs as charts, their parameters and metrics side by side, their per-task tables, their traces
    where they have any, and the report of each comparison of a sweep. `base` is where the user
    interface is, such as http://127.0.0.1:5000; `comparisons` are runs of their own.
    """
    root = base.rstrip("/")
    experiment_id = runs[0].experiment_id
    experiment = f"{root}/#/experiments/{experiment_id}"
    shown = views = f"{experiment}/runs?{CLASSIC}"
    ids = [run.run_id for run in runs]
    if len(ids) == 1:
        yield "run", f"{root}/{run_link(runs[0])}"
    else:
        quoted = ",".join(f"'{run_id}'" for run_id in ids)
        views += f"&searchFilter={quote(f'attributes.run_id IN ({quoted})')}"
    yield "runs", shown
    yield "charts", f"{views}&compareRunsMode=CHART"
    if len(ids) > 1:
        # This page finds the runs only where they come first.
        chosen = f"runs={_json(ids)}&experiments={_json([experiment_id])}"
        yield "compare", f"{root}/#/compare-runs?{chosen}&{CLASSIC}"
    yield "per task", f"{views}&compareRunsMode=ARTIFACT"
    if traced := [run.run_id for run in runs if run.traced]:
        # The last run, and the first one beside it: MLflow shows two at a time.
        beside = f"&compareToRunUuid={traced[0]}" if len(traced) > 1 else ""
        yield "traces", f"{experiment}/evaluation-runs?selectedRunUuid={traced[-1]}{beside}"
    for run in comparisons:
        yield "report", f"{root}/{run_link(run, '/artifacts/report.html')}"


def run_link(run: TrackedRun, page: str = "") -> str:
    """The address of a run from anywhere inside the user interface."""
    return f"#/experiments/{run.experiment_id}/runs/{run.run_id}{page}?{CLASSIC}"


def _json(ids: Sequence[str]) -> str:
    return quote(json.dumps(ids, separators=(",", ":")))
