"""What a run is found and told apart by in MLflow: parameters, metrics, tags, and their names."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from jevexp.core.identity import Source
from jevexp.core.json import dumps
from jevexp.core.summary import GroupSummary, Summary
from jevexp.store import Manifest, RunStatus
from jevexp.untrusted.addresses import redacted

# Longer values are unreadable in a table, and MLflow cuts them at 6000 without a word; the whole
# configuration is an artifact.
MAX_LENGTH = 500


def params(resolved: dict[str, Any]) -> dict[str, str]:
    """The short leaves by dotted name; a list is one leaf, as JSON. Nulls are left out."""
    leaves = dict(_leaves(resolved, ""))
    names = safe_names(leaves)
    return {names[name]: text for name, text in leaves.items() if len(text) <= MAX_LENGTH}


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, f"{path}.{key}" if path else str(key))
    elif value is not None:
        # A configuration of ours holds no password; a stranger's, or an old one, may.
        yield path, redacted(value if isinstance(value, str) else dumps(value))


HEADLINE = (
    "accuracy",
    "macro_accuracy",
    "brier_mean",
    "ece",
    "ordinal_mae",
    "coverage",
    "schema_validity",
)
FAMILY = ("accuracy", "brier_mean")


def metrics(manifest: Manifest, summary: Summary | None) -> dict[str, float]:
    """Metrics by name; what stands before the last slash becomes a section of charts."""
    found: dict[str, float | None] = {}
    if summary is not None:
        found |= {name: summary.number(name) for name in HEADLINE}
        found |= {f"latency/{name}": summary.number(name) for name in ("p50_s", "p95_s")}
        found |= _families(summary.per_family)
    if manifest.status is not RunStatus.RUNNING:
        # Until a run has ended, its manifest says 0 and means: not known yet.
        found["charged_usd"] = manifest.ledger.charged_by_run_usd
    return {name: float(value) for name, value in found.items() if value is not None}


def _families(per_family: dict[str, GroupSummary]) -> dict[str, float | None]:
    names = safe_names(per_family)
    return {
        f"family/{names[family]}/{name}": group.number(name)
        for family, group in per_family.items()
        for name in FAMILY
    }


# MLflow's limit is 250 for a whole name.
LONGEST_NAME = 180


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """A safe name for every name; different names stay different.

    A slash is replaced too: it would put one part of a chart's section into another.
    """
    safe = {name: _safe(name) for name in names}
    taken = Counter(safe.values())
    return {
        name: made if taken[made] == 1 or made == name else f"{made}_{_digest(name)}"
        for name, made in safe.items()
    }


def _safe(name: str) -> str:
    made = re.sub(r"[^\w.\- :]", "_", name)[:LONGEST_NAME]
    return made if made.strip(". ") else "_" * max(len(made), 1)


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]


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
