"""Writes one run's content, in batches: call by call it takes fifteen times as long."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jevexp.core.json import dumps
from jevexp.tracking.additions import WriteFiles
from jevexp.tracking.batches import batches
from jevexp.tracking.content import Content, DatasetInput
from jevexp.tracking.protocol import Change, TrackedRun
from jevexp.tracking.tags import EVIDENCE, NOTE, REPORT, RUN, SWEEP, TRACES
from jevexp.tracking.trace_writing import write_traces
from jevexp.untrusted.writing import write_new

_TRIES = 5
# MLflow refuses a request with more.
BATCH = 100
TABLE = "tables/per_task.json"
CONFIG = "config.yaml"
REPORT_FILE = "report.html"
# How MLflow knows which artifacts are tables.
TABLES_TAG = json.dumps([{"path": TABLE, "type": "table"}])


def write(client: Any, experiment_id: str, content: Content) -> TrackedRun:
    """Make the run, or bring an earlier state of it up to date, or add to it what is wanted now.

    The hash of the evidence is written last, so that a run without it is known to be unfinished;
    so are the marks of what may be added later.
    """
    found = _find(client, experiment_id, content)
    known = found.data.tags if found else {}
    if known.get(EVIDENCE) == content.evidence_sha256:
        run_id, change = found.info.run_id, Change.NONE
    else:
        known = {}
        change = Change.UPDATED if found else Change.CREATED
        run_id = found.info.run_id if found else _create(client, experiment_id, content)
        _log_run(client, run_id, content)
    added = False
    if content.report is not None and REPORT not in known:
        added = _log_report(client, run_id, content.report)
    if content.traces is not None and TRACES not in known:
        written = write_traces(client, experiment_id, run_id, content.traces())
        client.set_tag(run_id, TRACES, str(written))
        added = True
    if added and change is Change.NONE:
        change = Change.UPDATED
    return TrackedRun(
        run_id,
        experiment_id,
        content.name,
        content.directory,
        change,
        traced=TRACES in known or content.traces is not None,
    )


def _log_run(client: Any, run_id: str, content: Content) -> None:
    _log_values(client, run_id, content)
    log_dataset(client, run_id, content.dataset)
    _log_artifacts(client, run_id, content)
    client.set_terminated(run_id, content.status, content.end_ms)
    client.set_tag(run_id, EVIDENCE, content.evidence_sha256)


def _log_report(client: Any, run_id: str, write_report: WriteFiles) -> bool:
    """Log the report; False where there is nothing to say about the run."""
    with TemporaryDirectory() as folder:
        write_report(Path(folder))
        if not any(Path(folder).iterdir()):
            return False
        client.log_artifacts(run_id, folder)
    client.set_tag(run_id, REPORT, REPORT_FILE)
    return True


def _find(client: Any, experiment_id: str, content: Content) -> Any:
    """The run that was made from this directory, or None.

    A filter on the names would have to quote whatever people call a directory; the start time in
    milliseconds leaves hardly anything to compare here.
    """
    same_start = client.search_runs(
        [experiment_id], f"attributes.start_time = {content.start_ms}", max_results=1000
    )
    for run in same_start:
        if (run.data.tags.get(RUN), run.data.tags.get(SWEEP)) == (content.directory, content.sweep):
            return run
    return None


def _create(client: Any, experiment_id: str, content: Content) -> str:
    run = client.create_run(
        experiment_id, content.start_ms, tags=content.tags, run_name=content.name
    )
    return str(run.info.run_id)


def _log_values(client: Any, run_id: str, content: Content) -> None:
    from mlflow.entities import Metric, Param, RunTag

    texts = content.tags | {
        NOTE: content.note(),
        "mlflow.loggedArtifacts": TABLES_TAG,
    }
    values = [
        *(Metric(name, value, content.end_ms, 0) for name, value in content.metrics.items()),
        *(Param(name, value) for name, value in content.params.items()),
        *(RunTag(name, value) for name, value in texts.items()),
    ]
    for part in batches(values, BATCH):
        client.log_batch(
            run_id,
            metrics=[one for one in part if isinstance(one, Metric)],
            params=[one for one in part if isinstance(one, Param)],
            tags=[one for one in part if isinstance(one, RunTag)],
        )


def log_dataset(client: Any, run_id: str, dataset: DatasetInput) -> None:
    """Log the tasks as an input of a run, which MLflow shows in its list."""
    from mlflow.entities import Dataset, DatasetInput, InputTag
    from mlflow.exceptions import MlflowException

    entity = Dataset(
        name=dataset.name,
        digest=dataset.digest,
        source_type=dataset.source_type,
        source=dataset.source,
        profile=dataset.profile,
    )
    context = InputTag("mlflow.data.context", "evaluation")
    for tries_left in reversed(range(_TRIES)):
        try:
            client.log_inputs(run_id, [DatasetInput(entity, [context])])
            return
        except MlflowException as error:
            # Of workers that log one dataset for the first time, MLflow lets one; the others find
            # it there when they ask again.
            if not tries_left or "unique" not in str(error).lower():
                raise


def _log_artifacts(client: Any, run_id: str, content: Content) -> None:
    for path in content.files:
        client.log_artifact(run_id, str(path))
    if content.raw is not None:
        client.log_artifacts(run_id, str(content.raw), content.raw.name)
    client.log_dict(run_id, content.config, CONFIG)
    # Not `log_table`: that needs pandas, and appends where a table is there already.
    with TemporaryDirectory() as folder:
        table = Path(folder) / Path(TABLE).name
        write_new(table, dumps(content.table).encode())
        client.log_artifact(run_id, str(table), str(Path(TABLE).parent))
