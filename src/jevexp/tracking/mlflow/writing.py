"""Writes runs in batches, since call by call takes fifteen times as long, and comparisons."""

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jevexp.core.json import dumps
from jevexp.tracking import Change, SweepComparison, TrackedRun
from jevexp.tracking.mlflow.content import Content, Trace, dataset_input, evidence_sha256
from jevexp.tracking.mlflow.labels import DATASET_HASH, EVIDENCE, KIND, NOTE, RUN, SWEEP, TRACES
from jevexp.tracking.mlflow.links import run_link
from jevexp.tracking.mlflow.reading import find_runs, quoted, tracked
from jevexp.untrusted.writing import write_new

_TRIES = 5
# MLflow refuses a request with more.
BATCH = 100
# What MLflow keeps of a trace for its lists.
PREVIEW = 1000
TABLE = "tables/per_task.json"
# The tag with the name of the report among the artifacts, once it is there.
REPORT = "jev.report"


def write(client: Any, experiment_id: str, content: Content) -> TrackedRun:
    """Make the run, or bring an earlier state of it up to date, or add to it what is wanted now.

    The hash of the evidence is written last, so that a run without it is known to be unfinished;
    so are the marks of what may be added later.
    """
    earlier = _find(client, experiment_id, content)
    known = earlier.data.tags if earlier else {}
    if known.get(EVIDENCE) == content.evidence_sha256:
        run_id, change = earlier.info.run_id, Change.NONE
    else:
        known = {}
        change = Change.UPDATED if earlier else Change.CREATED
        run = earlier or client.create_run(
            experiment_id, content.start_ms, tags=content.tags, run_name=content.name
        )
        run_id = str(run.info.run_id)
        _log_values(client, run_id, content)
        log_dataset(client, run_id, content.dataset)
        _log_artifacts(client, run_id, content)
        client.set_terminated(run_id, content.status, content.end_ms)
        client.set_tag(run_id, EVIDENCE, content.evidence_sha256)
    added = False
    if content.report is not None and REPORT not in known:
        with TemporaryDirectory() as folder:
            content.report(Path(folder))
            if any(Path(folder).iterdir()):
                client.log_artifacts(run_id, folder)
                client.set_tag(run_id, REPORT, "report.html")
                added = True
    if content.traces is not None and TRACES not in known:
        count = write_traces(client, experiment_id, run_id, content.traces())
        client.set_tag(run_id, TRACES, str(count))
        added = True
    if added and change is Change.NONE:
        change = Change.UPDATED
    traced = TRACES in known or content.traces is not None
    return TrackedRun(run_id, experiment_id, content.name, content.directory, change, traced)


def _find(client: Any, experiment_id: str, content: Content) -> Any:
    """The run that was made from this directory, or None."""
    # A filter on the names would have to quote whatever people call a directory; the start time in
    # milliseconds leaves hardly anything to compare here.
    filter_ = f"attributes.start_time = {content.start_ms}"
    for run in client.search_runs([experiment_id], filter_, max_results=1000):
        if (run.data.tags.get(RUN), run.data.tags.get(SWEEP)) == (content.directory, content.sweep):
            return run
    return None


def _log_values(client: Any, run_id: str, content: Content) -> None:
    from mlflow.entities import Metric, Param, RunTag

    # How MLflow knows which artifacts are tables.
    tables = json.dumps([{"path": TABLE, "type": "table"}])
    texts = content.tags | {NOTE: content.note(), "mlflow.loggedArtifacts": tables}
    values = [
        *(Metric(name, value, content.end_ms, 0) for name, value in content.metrics.items()),
        *(Param(name, value) for name, value in content.params.items()),
        *(RunTag(name, value) for name, value in texts.items()),
    ]
    for batch in batches(values, BATCH):
        client.log_batch(
            run_id,
            metrics=[value for value in batch if isinstance(value, Metric)],
            params=[value for value in batch if isinstance(value, Param)],
            tags=[value for value in batch if isinstance(value, RunTag)],
        )


def log_dataset(client: Any, run_id: str, dataset: Mapping[str, str]) -> None:
    """Log the tasks as an input of a run, which MLflow shows in its list."""
    from mlflow.entities import Dataset, DatasetInput, InputTag
    from mlflow.exceptions import MlflowException

    context = InputTag("mlflow.data.context", "evaluation")
    for tries_left in reversed(range(_TRIES)):
        try:
            client.log_inputs(run_id, [DatasetInput(Dataset(**dataset), [context])])
            return
        except MlflowException as error:
            # Of workers that log one dataset for the first time, MLflow lets one; the others find
            # it there when they ask again.
            if not tries_left or "unique" not in str(error).lower():
                raise


def _log_artifacts(client: Any, run_id: str, content: Content) -> None:
    for path in content.files:
        client.log_artifact(run_id, path)
    if content.raw is not None:
        client.log_artifacts(run_id, content.raw, Path(content.raw).name)
    client.log_dict(run_id, content.config, "config.yaml")
    # Not `log_table`: that needs pandas, and appends where a table is there already.
    with TemporaryDirectory() as folder:
        table = Path(folder) / Path(TABLE).name
        write_new(table, dumps(content.table).encode())
        client.log_artifact(run_id, str(table), str(Path(TABLE).parent))


def batches(values: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """The values in lists of at most `size`, read as they are needed."""
    remaining = iter(values)
    while batch := list(islice(remaining, size)):
        yield batch


def write_traces(client: Any, experiment_id: str, run_id: str, traces: Iterable[Trace]) -> int:
    """Write a run's traces, and say how many; those that are there already stay one each."""
    from mlflow.tracing.client import TracingClient

    tracing = TracingClient(client.tracking_uri)
    count = 0
    for batch in batches(traces, BATCH):
        for trace in batch:
            tracing.start_trace(_info(trace, experiment_id, run_id))
        tracing.log_spans(experiment_id, [_span(trace, run_id) for trace in batch])
        count += len(batch)
    return count


def _info(trace: Trace, experiment_id: str, run_id: str) -> Any:
    from mlflow.entities import (
        AssessmentSource,
        Expectation,
        Feedback,
        TraceInfo,
        TraceLocation,
        TraceState,
    )

    digest = trace.digest(run_id)[:32]
    of_trace = {"source": AssessmentSource("CODE", "jevexp"), "trace_id": f"tr-{digest}"}
    assessments: list[Any] = [
        Feedback(name=name, value=value, **of_trace) for name, value in trace.assessments.items()
    ]
    if trace.expected is not None:
        assessments.append(Expectation("expected", trace.expected, **of_trace))
    for assessment in assessments:
        # Given by us, so that writing it again does not make it twice.
        assessment.assessment_id = f"a-{digest}-{assessment.name}"
    return TraceInfo(
        trace_id=f"tr-{digest}",
        trace_location=TraceLocation.from_experiment_id(experiment_id),
        request_time=trace.start_ns // 1_000_000,
        execution_duration=(trace.end_ns - trace.start_ns) // 1_000_000,
        state=TraceState.OK if trace.ok else TraceState.ERROR,
        request_preview=dumps(trace.inputs)[:PREVIEW],
        response_preview=dumps(trace.outputs)[:PREVIEW],
        # By which MLflow knows whose trace it is, and that its spans are read the newest way.
        trace_metadata={"mlflow.sourceRun": run_id, "mlflow.trace_schema.version": "3"},
        tags={"mlflow.traceName": trace.task_id, "jev.family": trace.family},
        assessments=assessments,
    )


def _span(trace: Trace, run_id: str) -> Any:
    from mlflow.entities import Span
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext, Status, StatusCode

    digest = trace.digest(run_id)
    attributes = {
        "mlflow.traceRequestId": f"tr-{digest[:32]}",
        "mlflow.spanType": "LLM",
        "mlflow.spanInputs": trace.inputs,
        "mlflow.spanOutputs": trace.outputs,
    }
    return Span(
        ReadableSpan(
            name="decision",
            context=SpanContext(int(digest[:32], 16), int(digest[32:48], 16), is_remote=False),
            attributes={name: dumps(value) for name, value in attributes.items()},
            start_time=trace.start_ns,
            end_time=trace.end_ns,
            status=Status(StatusCode.OK if trace.ok else StatusCode.ERROR),
        )
    )


COMPARISON = "comparison"


def write_comparison(client: Any, experiment_id: str, comparison: SweepComparison) -> TrackedRun:
    """Make the run, or bring it up to date if the sweep has other evidence now.

    As with a run, the hash of the evidence is written last.
    """
    hashes = [evidence_sha256(directory) for directory in comparison.runs]
    evidence = hashlib.sha256(" ".join(hashes).encode()).hexdigest()
    earlier = _find_comparison(client, experiment_id, comparison.sweep)
    change = Change.UPDATED if earlier else Change.CREATED
    if earlier is not None and earlier.data.tags.get(EVIDENCE) == evidence:
        run_id, change = earlier.info.run_id, Change.NONE
    else:
        run_id = _log_comparison(client, experiment_id, comparison, earlier)
        client.set_tag(run_id, EVIDENCE, evidence)
    return TrackedRun(run_id, experiment_id, comparison.name, comparison.sweep, change)


def _log_comparison(
    client: Any, experiment_id: str, comparison: SweepComparison, earlier: Any
) -> str:
    manifest = comparison.runs[0].read_manifest()
    tags = {
        KIND: COMPARISON,
        SWEEP: comparison.sweep,
        RUN: comparison.sweep,
        DATASET_HASH: manifest.dataset.dataset_hash,
        "jev.compared": str(len(comparison.runs)),
        "mlflow.source.name": "jevexp",
        "mlflow.source.type": "LOCAL",
    }
    run = earlier or client.create_run(experiment_id, _now(), tags=tags, run_name=comparison.name)
    run_id = str(run.info.run_id)
    log_dataset(client, run_id, dataset_input(manifest))
    runs = {run.directory: run for run in find_runs(client, experiment_id, comparison.sweep)}
    addresses = {directory: run_link(member) for directory, member in runs.items()}
    for name, value in (tags | {NOTE: comparison.note(addresses)}).items():
        client.set_tag(run_id, name, value)
    for directory, name in comparison.names().items():
        if directory in runs:
            client.update_run(runs[directory].run_id, name=name)
    with TemporaryDirectory() as folder:
        comparison.report(Path(folder))
        client.log_artifacts(run_id, folder)
    client.set_terminated(run_id, "FINISHED", _now())
    return run_id


def find_comparison(client: Any, experiment_id: str, run_id: str) -> list[TrackedRun]:
    """The comparison of the sweep that a run belongs to, as far as it was logged to its end."""
    sweep = client.get_run(run_id).data.tags.get(SWEEP)
    run = None if sweep is None else _find_comparison(client, experiment_id, sweep)
    return [tracked(run)] if run is not None and EVIDENCE in run.data.tags else []


def _find_comparison(client: Any, experiment_id: str, sweep: str) -> Any:
    where = f"tags.`{KIND}` = '{COMPARISON}' and tags.`{SWEEP}` = {quoted(sweep)}"
    return next(iter(client.search_runs([experiment_id], where, max_results=1)), None)


def _now() -> int:
    return round(time.time() * 1000)
