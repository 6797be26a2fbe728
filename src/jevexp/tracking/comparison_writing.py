"""Writes a sweep's comparison: a run of its own, beside the runs that it is about."""

import hashlib
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jevexp.tracking.content import dataset_input, evidence_sha256
from jevexp.tracking.labels import DATASET_HASH, EVIDENCE, KIND, NOTE, RUN, SWEEP
from jevexp.tracking.protocol import Change, SweepComparison, TrackedRun
from jevexp.tracking.reading import quoted, tracked
from jevexp.tracking.writing import log_dataset

COMPARISON = "comparison"


def write_comparison(client: Any, experiment_id: str, comparison: SweepComparison) -> TrackedRun:
    """Make the run, or bring it up to date if the sweep has other evidence now.

    As with a run, the hash of the evidence is written last.
    """
    evidence = _evidence(comparison)
    found = _find(client, experiment_id, comparison.sweep)
    if found is not None and found.data.tags.get(EVIDENCE) == evidence:
        return _tracked(found.info.run_id, experiment_id, comparison, Change.NONE)
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
    run_id = (
        found.info.run_id
        if found
        else client.create_run(
            experiment_id, _now(), tags=tags, run_name=comparison.name
        ).info.run_id
    )
    log_dataset(client, run_id, dataset_input(manifest))
    for name, value in (tags | {NOTE: comparison.note()}).items():
        client.set_tag(run_id, name, value)
    for named, text in comparison.names().items():
        client.update_run(named, name=text)
    with TemporaryDirectory() as folder:
        comparison.report(Path(folder))
        client.log_artifacts(run_id, folder)
    client.set_terminated(run_id, "FINISHED", _now())
    client.set_tag(run_id, EVIDENCE, evidence)
    change = Change.UPDATED if found else Change.CREATED
    return _tracked(run_id, experiment_id, comparison, change)


def find_comparison(client: Any, experiment_id: str, run: TrackedRun) -> list[TrackedRun]:
    """The comparison of the sweep that a run belongs to, as far as it was logged to its end."""
    sweep = client.get_run(run.run_id).data.tags.get(SWEEP)
    found = None if sweep is None else _find(client, experiment_id, sweep)
    return [tracked(found)] if found is not None and EVIDENCE in found.data.tags else []


def _find(client: Any, experiment_id: str, sweep: str) -> Any:
    where = f"tags.`{KIND}` = '{COMPARISON}' and tags.`{SWEEP}` = {quoted(sweep)}"
    return next(iter(client.search_runs([experiment_id], where, max_results=1)), None)


def _tracked(
    run_id: str, experiment_id: str, comparison: SweepComparison, change: Change
) -> TrackedRun:
    return TrackedRun(run_id, experiment_id, comparison.name, comparison.sweep, change)


def _evidence(comparison: SweepComparison) -> str:
    """One hash over the evidence of all runs, in their order."""
    hashes = [evidence_sha256(directory) for directory in comparison.runs]
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()


def _now() -> int:
    return round(time.time() * 1000)
