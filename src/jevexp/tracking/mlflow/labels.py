"""What MLflow shows of a run: parameters, metrics, tags, their names, and a description."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from jevexp.core.identity import Source
from jevexp.core.json import dumps
from jevexp.core.record import Summary
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
    values: dict[str, float | None] = {}
    if summary is not None:
        values |= {name: summary.number(name) for name in HEADLINE}
        values |= {f"latency/{name}": summary.number(name) for name in ("p50_s", "p95_s")}
        names = safe_names(summary.per_family)
        for family, group in summary.per_family.items():
            values |= {f"family/{names[family]}/{name}": group.number(name) for name in FAMILY}
    if manifest.status is not RunStatus.RUNNING:
        # Until a run has ended, its manifest says 0 and means: not known yet.
        values["charged_usd"] = manifest.ledger.charged_by_run_usd
    if manifest.counts.truncated:
        values["truncated"] = manifest.counts.truncated
    return {name: float(value) for name, value in values.items() if value is not None}


# MLflow's limit is 250 for a whole name.
LONGEST_NAME = 180


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """A safe name for every name; different names stay different.

    A slash is replaced too: it would put one part of a chart's section into another.
    """
    safe = {}
    for name in names:
        text = re.sub(r"[^\w.\- :]", "_", name)[:LONGEST_NAME]
        safe[name] = text if text.strip(". ") else "_" * max(len(text), 1)
    counts = Counter(safe.values())
    return {
        name: text
        if counts[text] == 1 or text == name
        else f"{text}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        for name, text in safe.items()
    }


KIND = "jev.kind"
RUN = "jev.run"
SWEEP = "jev.sweep"
# Where the run directory was when it was logged.
PATH = "jev.path"
DATASET_HASH = "jev.dataset_hash"
# MLflow's own, for the description.
NOTE = "mlflow.note.content"
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
    values = {
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
    return {name: redacted(str(value)) for name, value in values.items() if value is not None}


def observed(manifest: Manifest, field: str) -> str | None:
    """What the strongest source says about a field of the model; null where all only guess."""
    report = manifest.identity.fields.get(field) if manifest.identity else None
    for observation in report.observed if report else ():
        if observation.source is not Source.SERVER_GUESS:
            return str(observation.value)
    return None


def note(
    directory: RunDirectory, manifest: Manifest, summary: Summary | None, intervals: Intervals
) -> str:
    """The text that MLflow shows above everything else of a run, in Markdown."""
    reason = manifest.stop_reason or manifest.error
    counts = manifest.counts
    rows = [
        ("Status", manifest.status + (f", {plain(reason)}" if reason else "")),
        ("Tasks", f"{counts.requested}, attempted {counts.attempted}, valid {counts.valid}"),
        *(_numbers(manifest, summary, intervals) if summary else ()),
        *_identity(manifest),
    ]
    parts = ["| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in rows)]
    if report := manifest.identity:
        odd = [f"contradicted: {code(name)}" for name in report.contradictions]
        odd += [f"{plain(finding.level)}: {plain(finding.message)}" for finding in report.findings]
        if odd:
            parts.append("\n".join(f"- {line}" for line in odd))
    parts.append(f"Evidence: {code(str(directory.path.resolve()))}\n")
    return "\n\n".join(parts)


def _numbers(
    manifest: Manifest, summary: Summary, intervals: Intervals
) -> Iterator[tuple[str, str]]:
    several = manifest.concurrency > 1
    load = f", with {manifest.concurrency} requests at once" if several else ""
    right = f"({summary.n_correct} of {summary.n_scorable})"
    for title, name, digits, shape in (
        ("Accuracy", "accuracy", 3, f"**{{}}** {right}"),
        ("Brier", "brier_mean", 4, "{}"),
        ("ECE", "ece", 4, "{}"),
        ("Ordinal MAE", "ordinal_mae", 3, "{}"),
        ("Latency, median", "p50_s", 3, "{} s"),
        ("Latency, p95", "p95_s", 3, f"{{}} s{load}"),
    ):
        if (value := summary.number(name)) is None:
            continue
        text = shape.format(f"{value:.{digits}f}")
        if name in intervals:
            low, high = intervals[name]
            text += f", 95 % interval {low:.{digits}f} to {high:.{digits}f}"
        yield title, text


def _identity(manifest: Manifest) -> Iterator[tuple[str, str]]:
    dataset, declared = manifest.dataset, manifest.model.declared
    commit = dataset.pin.commit
    yield "Dataset", plain(f"{dataset.name}{f' @ {commit[:12]}' if commit else ''}")
    yield "Dataset hash", code(dataset.dataset_hash)
    yield "Model", code(manifest.model.requested)
    if unexpected := manifest.model.unexpected_models:
        yield "Model, answered", f"**{', '.join(map(code, unexpected))}**"
    for name, show, claim, field in (
        ("Quantization", plain, declared.quantization.label, "quantization.ftype"),
        ("Weights", code, declared.weights.sha256, "weights.sha256"),
    ):
        if claim:
            yield f"{name}, declared", show(claim)
        if value := observed(manifest, field):
            yield f"{name}, observed", show(value)
    if manifest.identity:
        yield "Identity", f"**{plain(manifest.identity.status.words)}**"
    yield "Backend", plain(manifest.backend.name)


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
    return _MEANS.sub(lambda mark: f"&#{ord(mark[0])};", printable(text))


def code(text: str) -> str:
    """`text` in a code span, from which no character gets out; for tables as well."""
    # A code span has no escapes: what could end it, or a table's cell, gives way to its double.
    return f"`{printable(text).translate(_ALIKE)}`"
