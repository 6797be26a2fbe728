"""What a run is found and told apart by in MLflow: parameters, metrics, tags, and their names."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from jevexp.core.identity import Source
from jevexp.core.json import dumps
from jevexp.core.record import GroupSummary, Summary
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.tracking import Intervals
from jevexp.untrusted.addresses import redacted
from jevexp.untrusted.console import printable

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


def note(
    directory: RunDirectory,
    manifest: Manifest,
    summary: Summary | None,
    intervals: Intervals,
) -> str:
    """The text that MLflow shows above everything else of a run."""
    rows = [*_numbers(manifest, summary, intervals), *_identity(manifest)]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows if value is not None)
    parts = [f"| | |\n|---|---|\n{table}", *_findings(manifest)]
    return "\n\n".join([*parts, f"Evidence: {code(str(directory.path.resolve()))}"]) + "\n"


def _numbers(
    manifest: Manifest, summary: Summary | None, intervals: Intervals
) -> Iterator[tuple[str, str | None]]:
    def with_interval(text: str, name: str, digits: int) -> str:
        if (found := intervals.get(name)) is None:
            return text
        low, high = found
        return f"{text}, 95 % interval {low:.{digits}f} to {high:.{digits}f}"

    yield "Status", manifest.status + (f", {plain(why)}" if (why := _reason(manifest)) else "")
    counts = manifest.counts
    yield "Tasks", f"{counts.requested}, attempted {counts.attempted}, valid {counts.valid}"
    if summary is None:
        return
    if summary.accuracy is not None:
        right = f"{summary.n_correct} of {summary.n_scorable}"
        yield "Accuracy", with_interval(f"**{summary.accuracy:.3f}** ({right})", "accuracy", 3)
    if summary.brier_mean is not None:
        yield "Brier", with_interval(f"{summary.brier_mean:.4f}", "brier_mean", 4)
    if summary.ece:
        yield "ECE", with_interval(f"{summary.ece.ece:.4f}", "ece", 4)
    if summary.ordinal_mae is not None:
        yield "Ordinal MAE", with_interval(f"{summary.ordinal_mae:.3f}", "ordinal_mae", 3)
    if summary.latency.p50_s is not None:
        yield "Latency, median", with_interval(f"{summary.latency.p50_s:.3f} s", "p50_s", 3)
        yield "Latency, p95", f"{summary.latency.p95_s:.3f} s{_load(manifest)}"


def _identity(manifest: Manifest) -> Iterator[tuple[str, str | None]]:
    dataset = manifest.dataset
    commit = dataset.pin.commit
    yield "Dataset", plain(f"{dataset.name}{f' @ {commit[:12]}' if commit else ''}")
    yield "Dataset hash", code(dataset.dataset_hash)
    yield "Model", code(manifest.model.requested)
    if unexpected := manifest.model.strangers:
        yield "Model, answered", f"**{', '.join(map(code, unexpected))}**"
    label = manifest.model.declared.quantization.label
    yield "Quantization, declared", plain(label) if label else None
    if ftype := observed(manifest, "quantization.ftype"):
        yield "Quantization, observed", plain(ftype)
    sha256 = manifest.model.declared.weights.sha256
    yield "Weights, declared", code(sha256) if sha256 else None
    if found := observed(manifest, "weights.sha256"):
        yield "Weights, observed", code(found)
    if manifest.identity:
        yield "Identity", f"**{plain(manifest.identity.status.words)}**"
    yield "Backend", plain(manifest.backend.name)


def _findings(manifest: Manifest) -> Iterator[str]:
    """What is odd about the identity: contradicted fields, and findings such as a telling alias."""
    if manifest.identity is None:
        return
    lines = [f"- contradicted: {code(name)}" for name in manifest.identity.contradictions]
    lines += [
        f"- {plain(finding.level)}: {plain(finding.message)}"
        for finding in manifest.identity.findings
    ]
    if lines:
        yield "\n".join(lines)


def _reason(manifest: Manifest) -> str | None:
    return manifest.stop_reason or manifest.error


def _load(manifest: Manifest) -> str:
    several = manifest.concurrency > 1
    return f", with {manifest.concurrency} requests at once" if several else ""


# Everything that Markdown or HTML gives a meaning, also at a line's beginning. Without
# its colon an address becomes no link by itself.
_MEANS = re.compile(r"([\\`*_{}\[\]()<>#+!|~$&^=:@-])")


_ALIKE = {
    ord("`"): "\N{MODIFIER LETTER GRAVE ACCENT}",
    ord("|"): "\N{FULLWIDTH VERTICAL LINE}",
    ord("<"): "\N{FULLWIDTH LESS-THAN SIGN}",
}


def plain(text: str) -> str:
    """`text` on one line, every character of it shown as it is."""
    return _MEANS.sub(lambda found: f"&#{ord(found[0])};", printable(text))


def code(text: str) -> str:
    """`text` in a code span, from which no character gets out; for tables as well."""
    # A code span has no escapes: what could end it, or a table's cell, gives way to its double.
    return f"`{printable(text).translate(_ALIKE)}`"
