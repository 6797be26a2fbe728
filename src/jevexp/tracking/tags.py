"""What a run is found by, and what it claims to be."""

from jevexp.evidence import Manifest

KIND = "jev.kind"
RUN = "jev.run"
SWEEP = "jev.sweep"
DATASET_HASH = "jev.dataset_hash"
# Written last: a run that carries it is all there, and its evidence had this hash.
EVIDENCE = "jev.evidence_sha256"


def tags(manifest: Manifest) -> dict[str, str]:
    """Tags by name; what is null is left out."""
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
        "jev.weights_sha256": declared["weights"]["sha256"],
        "jev.quantization": declared["quantization"]["label"],
        "jev.commit": manifest.software.git_commit,
        "jev.version": manifest.software.jevexp,
        # MLflow's own, for its Source column.
        "mlflow.source.name": "jevexp",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": manifest.software.git_commit,
    }
    return {name: str(value) for name, value in found.items() if value is not None}
