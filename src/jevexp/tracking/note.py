"""A run's description in Markdown: what ran, how it went, where its evidence is."""

import re
from collections.abc import Iterator

from jevexp.core.summary import Summary
from jevexp.store import Manifest, RunDirectory
from jevexp.tracking.labels import observed
from jevexp.tracking.protocol import Intervals
from jevexp.untrusted.console import printable


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
    if strangers := manifest.model.strangers:
        yield "Model, answered", f"**{', '.join(map(code, strangers))}**"
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
