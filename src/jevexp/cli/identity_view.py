"""What the terminal says about a run's identity, from its manifest."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from jevexp.identity import Observed, shown, table_rows
from jevexp.store import Manifest

_STYLE = {
    "confirmed": "green",
    "contradicted": "bold red",
    "warning": "bold yellow",
    "contradiction": "bold red",
}


def run_lines(manifest: Manifest) -> Iterator[Text]:
    """The verdict with the fingerprint, then each contradiction and finding."""
    if strangers := manifest.model.strangers:
        yield Text.assemble(
            ("  warning: ", _STYLE["warning"]),
            f"{manifest.model.requested} was asked, {', '.join(strangers)} answered",
        )
    identity = manifest.identity
    if identity is None:
        return
    counts = Counter(field["verdict"] for field in identity["fields"].values())
    verdict = identity["verdict"]
    line = Text("identity: ").append(_words(verdict), style=_STYLE.get(verdict, ""))
    numbers = [f"{count} {_words(name)}" for name, count in counts.most_common()]
    line.append(f" ({', '.join(numbers)})" if numbers else "")
    if manifest.fingerprint:
        line.append(f" · {manifest.fingerprint.value}")
    yield line
    for name, field in identity["fields"].items():
        if field["verdict"] == "contradicted":
            declared = "nothing" if field["declared"] is None else shown(field["declared"])
            yield Text(f"  model.{name}: declared {declared}, found {_found(field)}", style="red")
    yield from identity_lines(identity)


def identity_lines(identity: dict[str, Any]) -> Iterator[Text]:
    """A line a finding."""
    for finding in identity["findings"]:
        level = finding["level"]
        label = Text(f"  {level}: ", style=_STYLE.get(level, ""))
        yield label.append(finding["message"], style="default")


def identity_table(identity: dict[str, Any]) -> Table:
    """Every field with both sides and where each value came from, contradictions first."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("field", "verdict", "declared", "observed", "source"):
        table.add_column(heading, overflow="fold")
    for row in table_rows(identity):
        verdict = Text(_words(row.verdict), style=_STYLE.get(row.verdict, ""))
        table.add_row(
            Text(row.field), verdict, Text(row.declared), Text(row.observed), Text(row.source)
        )
    return table


def observed_table(observed: Observed) -> Table:
    """Everything that was observed, and by which source."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("field", "observed", "source"):
        table.add_column(heading, overflow="fold")
    for name, values in observed.values.items():
        for value in values:
            table.add_row(Text(name), Text(shown(value.value)), Text(value.source.value))
    return table


def _found(field: dict[str, Any]) -> str:
    return ", ".join(f"{shown(one['value'])} ({one['source']})" for one in field["observed"])


def _words(code: str) -> str:
    return code.replace("_", " ")
