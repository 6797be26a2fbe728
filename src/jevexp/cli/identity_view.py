"""A run's identity on the terminal: its verdict, its fields and what was observed."""

from collections import Counter
from collections.abc import Iterator

from rich import box
from rich.table import Table
from rich.text import Text

from jevexp.core.identity import ClaimStatus, IdentityReport, in_words
from jevexp.identity import Observed
from jevexp.store import Manifest

_STYLE = {
    "confirmed": "green",
    "contradicted": "bold red",
    "warning": "bold yellow",
    "contradiction": "bold red",
}


def run_lines(manifest: Manifest) -> Iterator[Text]:
    """The verdict with the fingerprint, then each contradiction and finding."""
    if unexpected := manifest.model.unexpected_models:
        yield Text.assemble(
            ("  warning: ", _STYLE["warning"]),
            f"{manifest.model.requested} was asked, {', '.join(unexpected)} answered",
        )
    identity = manifest.identity
    if identity is None:
        return
    counts = Counter(field.status for field in identity.fields.values())
    line = Text("identity: ").append(identity.status.words, style=_STYLE.get(identity.status, ""))
    numbers = [f"{count} {status.words}" for status, count in counts.most_common()]
    line.append(f" ({', '.join(numbers)})" if numbers else "")
    if manifest.fingerprint:
        line.append(f" · {manifest.fingerprint.value}")
    yield line
    for name, field in identity.contradictions.items():
        declared = "nothing" if field.declared is None else in_words(field.declared)
        observed = ", ".join(
            f"{in_words(observed.value)} ({observed.source})" for observed in field.observed
        )
        yield Text(f"  model.{name}: declared {declared}, found {observed}", style="red")
    yield from identity_lines(identity)


def identity_lines(identity: IdentityReport) -> Iterator[Text]:
    """A line a finding."""
    for finding in identity.findings:
        label = Text(f"  {finding.level}: ", style=_STYLE.get(finding.level, ""))
        yield label.append(finding.message, style="default")


def identity_table(identity: IdentityReport) -> Table:
    """Every field with both sides and where each value came from, contradictions first."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("field", "verdict", "declared", "observed", "source"):
        table.add_column(heading, overflow="fold")
    contradictions_first = sorted(
        identity.fields.items(), key=lambda named: named[1].status is not ClaimStatus.CONTRADICTED
    )
    for name, field in contradictions_first:
        sources = field.sources()
        table.add_row(
            Text(name),
            Text(field.status.words, style=_STYLE.get(field.status, "")),
            Text("" if field.declared is None else in_words(field.declared)),
            Text("\n".join(sources)),
            Text("\n".join(sources.values())),
        )
    return table


def observed_table(observed: Observed) -> Table:
    """Everything that was observed, and by which source."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("field", "observed", "source"):
        table.add_column(heading, overflow="fold")
    for name, values in observed.values.items():
        for value in values:
            table.add_row(Text(name), Text(in_words(value.value)), Text(value.source.value))
    return table
