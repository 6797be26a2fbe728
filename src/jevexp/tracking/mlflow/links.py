"""Addresses inside MLflow's user interface: its front page shows little of an experiment."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

DEFAULT_PORT = 5000
# The user interface for runs and metrics; MLflow starts with the one for chats.
CLASSIC = "workflowType=machine_learning"


@dataclass(frozen=True, slots=True)
class Links:
    """Where a browser shows some runs.

    Attributes:
        start: the command that serves these addresses; None where a server does already.
        run_list: the runs of the experiment, newest first.
        charts: the metrics of these runs as charts; of all, for a single run.
        tables: their per-task tables side by side, likewise.
        compare: parameters and metrics side by side; None for a single run.
        traces: the traces of these runs side by side, two at a time; None where there are none.
        comparisons: the report of each sweep that was compared.
        runs: one address a run, in the order that was asked for.
    """

    start: str | None
    run_list: str
    charts: str
    tables: str
    compare: str | None
    traces: str | None
    comparisons: tuple[str, ...]
    runs: tuple[str, ...]

    def lines(self) -> list[str]:
        """The addresses for a terminal, one a line, labelled."""
        rows = [
            ("start", self.start),
            ("run", self.runs[0] if len(self.runs) == 1 else None),
            ("runs", self.run_list),
            ("charts", self.charts),
            ("compare", self.compare),
            ("per task", self.tables),
            ("traces", self.traces),
            *(("report", address) for address in self.comparisons),
        ]
        return [f"{label:<8}  {text}" for label, text in rows if text]


def make_links(
    base: str,
    experiment_id: str,
    run_ids: Sequence[str],
    *,
    traced: Sequence[str] = (),
    comparisons: Sequence[str] = (),
    start: str | None = None,
) -> Links:
    """The addresses for runs of one experiment.

    Args:
        base: where the user interface is, such as http://127.0.0.1:5000.
        experiment_id: the experiment that holds the runs.
        run_ids: at least one.
        traced: those of them that have traces.
        comparisons: the ids of runs that hold the comparison of a sweep.
        start: the command that starts the user interface there, if it must be started.
    """
    root = base.rstrip("/")
    experiment = f"{root}/#/experiments/{experiment_id}"
    views = f"{experiment}/runs?{CLASSIC}"
    compare = None
    if len(run_ids) > 1:
        ids = ",".join(f"'{run_id}'" for run_id in run_ids)
        views += f"&searchFilter={quote(f'attributes.run_id IN ({ids})')}"
        # This page finds the runs only where they come first.
        chosen = f"runs={_json(run_ids)}&experiments={_json([experiment_id])}"
        compare = f"{root}/#/compare-runs?{chosen}&{CLASSIC}"
    traces = None
    if traced:
        # The last run, and the first one beside it.
        beside = f"&compareToRunUuid={traced[0]}" if len(traced) > 1 else ""
        traces = f"{experiment}/evaluation-runs?selectedRunUuid={traced[-1]}{beside}"
    return Links(
        start=start,
        run_list=f"{experiment}/runs?{CLASSIC}",
        charts=f"{views}&compareRunsMode=CHART",
        tables=f"{views}&compareRunsMode=ARTIFACT",
        compare=compare,
        traces=traces,
        comparisons=tuple(
            f"{experiment}/runs/{run_id}/artifacts/report.html?{CLASSIC}" for run_id in comparisons
        ),
        runs=tuple(root + "/" + run_link(experiment_id, run_id) for run_id in run_ids),
    )


def run_link(experiment_id: str, run_id: str) -> str:
    """The address of a run from anywhere inside the user interface."""
    return f"#/experiments/{experiment_id}/runs/{run_id}?{CLASSIC}"


def _json(ids: Sequence[str]) -> str:
    return quote(json.dumps(list(ids), separators=(",", ":")))
