"""What a run is found by, and what it claims to be."""

from jevexp.core.identity import Source
from jevexp.store import Manifest
from jevexp.untrusted.addresses import redacted

KIND = "jev.kind"
RUN = "jev.run"
SWEEP = "jev.sweep"
# Where the run directory was when it was logged.
PATH = "jev.path"
DATASET_HASH = "jev.dataset_hash"
# MLflow's own, for the description.
NOTE = "mlflow.note.content"
# The name of the report among the artifacts, once it is there.
REPORT = "jev.report"
# How many traces the run has, once it has all of them.
TRACES = "jev.traces"
# Written last: a run that carries it is all there, and its evidence had this hash.
EVIDENCE = "jev.evidence_sha256"


def tags(manifest: Manifest) -> dict[str, str]:
    """Tags by name; what is null is left out.

    The hash of the weights is the observed one, or the declared one where nothing was observed;
    `jev.identity` says which. The quantization is the declared label, the ftype the observed one.
    """
    declared = manifest.model.declared
    found = {
        KIND: "run",
        RUN: manifest.run,
        SWEEP: manifest.sweep,
        "jev.status": manifest.status.value,
        "jev.exit_status": manifest.exit_status,
        "jev.stop_reason": manifest.stop_reason,
        "jev.error": manifest.error,
        "jev.config_sha256": manifest.config.sha256,
        DATASET_HASH: manifest.dataset.dataset_hash,
        "jev.model": manifest.model.requested,
        "jev.model_answered": ", ".join(manifest.model.resolved) or None,
        "jev.identity": manifest.identity and manifest.identity.status.value,
        "jev.fingerprint": manifest.fingerprint and manifest.fingerprint.value,
        "jev.weights_sha256": observed(manifest, "weights.sha256") or declared.weights.sha256,
        "jev.ftype": observed(manifest, "quantization.ftype"),
        "jev.quantization": declared.quantization.label,
        "jev.commit": manifest.software.git_commit,
        "jev.version": manifest.software.jevexp,
        # MLflow's own, for its Source column.
        "mlflow.source.name": "jevexp",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": manifest.software.git_commit,
    }
    return {name: redacted(str(value)) for name, value in found.items() if value is not None}


def observed(manifest: Manifest, field: str) -> str | None:
    """What the strongest source says about a field of the model; null where all only guess."""
    report = manifest.identity.fields.get(field) if manifest.identity else None
    certain = [
        observed.value
        for observed in (report.observed if report else ())
        if observed.source is not Source.SERVER_GUESS
    ]
    return str(certain[0]) if certain else None
