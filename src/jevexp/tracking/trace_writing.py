"""Writes traces: MLflow makes them one by one, and takes what is in them in batches."""

from collections.abc import Iterable
from typing import Any

from jevexp.core.json import dumps
from jevexp.tracking.batches import batches
from jevexp.tracking.traces import Trace

BATCH = 100
# What MLflow keeps for its lists; the whole text is in the trace.
PREVIEW = 1000
SOURCE = "jevexp"


def write_traces(client: Any, experiment_id: str, run_id: str, traces: Iterable[Trace]) -> int:
    """Write a run's traces; those that are there already stay one each.

    Returns:
        How many the run has.
    """
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
    from mlflow.entities import TraceInfo, TraceLocation, TraceState

    trace_id = _trace_id(trace, run_id)
    return TraceInfo(
        trace_id=trace_id,
        trace_location=TraceLocation.from_experiment_id(experiment_id),
        request_time=trace.start_ns // 1_000_000,
        execution_duration=(trace.end_ns - trace.start_ns) // 1_000_000,
        state=TraceState.OK if trace.ok else TraceState.ERROR,
        request_preview=dumps(trace.inputs)[:PREVIEW],
        response_preview=dumps(trace.outputs)[:PREVIEW],
        # By which MLflow knows whose trace it is, and that its spans are read the newest way.
        trace_metadata={"mlflow.sourceRun": run_id, "mlflow.trace_schema.version": "3"},
        tags={"mlflow.traceName": trace.task_id, "jev.family": trace.family},
        assessments=_assessments(trace, trace_id),
    )


def _assessments(trace: Trace, trace_id: str) -> list[Any]:
    from mlflow.entities import AssessmentSource, Expectation, Feedback

    source = AssessmentSource("CODE", SOURCE)
    made: list[Any] = [
        Feedback(name=name, value=value, source=source, trace_id=trace_id)
        for name, value in trace.assessments.items()
    ]
    if trace.expected is not None:
        expected = Expectation("expected", trace.expected, source=source, trace_id=trace_id)
        made.append(expected)
    for assessment in made:
        # Given by us, so that writing it again does not make it twice.
        assessment.assessment_id = f"a-{trace_id.removeprefix('tr-')}-{assessment.name}"
    return made


def _span(trace: Trace, run_id: str) -> Any:
    from mlflow.entities import Span
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext, Status, StatusCode

    digest = trace.digest(run_id)
    attributes = {
        "mlflow.traceRequestId": _trace_id(trace, run_id),
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


def _trace_id(trace: Trace, run_id: str) -> str:
    return f"tr-{trace.digest(run_id)[:32]}"
