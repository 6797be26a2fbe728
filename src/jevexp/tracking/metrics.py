"""A run's numbers as metrics. What is null is left out: MLflow has no word for unknown."""

from jevexp.core.summary import GroupSummary, Summary
from jevexp.store import Manifest, RunStatus
from jevexp.tracking.names import safe_names

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
