"""The tables at the end: one run's results, and a sweep's runs side by side."""

from collections.abc import Collection, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from jevexp.analysis.metrics import METRICS
from jevexp.core.record import GroupSummary, Summary
from jevexp.store import Manifest, RunStatus
from jevexp.store.manifest import differing_overrides

_STYLE = {RunStatus.COMPLETE: "green", RunStatus.RUNNING: "yellow"}


def results(manifest: Manifest, summary: Summary) -> Table:
    """One run: a row for all tasks and one a family."""
    table = Table(box=box.SIMPLE_HEAD, title=manifest.title, title_justify="left")
    table.add_column("tasks")
    for heading in ("valid", *_headings(), "p95 s"):
        table.add_column(heading, justify="right")
    table.add_row(*_numbers("all", summary), style="bold")
    for family, part in summary.per_family.items():
        table.add_row(*_numbers(family, part))
    return table


def _numbers(name: str, part: GroupSummary) -> list[str]:
    return [
        name,
        f"{part.n_valid}/{part.n_planned}",
        *_metrics(part),
        number(part.latency.p95_s),
    ]


def _headings() -> list[str]:
    return [*(metric.heading for metric in METRICS.values()), "p50 s"]


def _metrics(part: GroupSummary) -> list[str]:
    return [
        *(number(metric.of_summary(part)) for metric in METRICS.values()),
        number(part.latency.p50_s),
    ]


def verdict(manifest: Manifest, *, killed: bool = False) -> Text:
    """One line: how the run ended, and how many tasks were answered."""
    counts = manifest.counts
    text = _status(manifest, killed=killed)
    text.append(f": {counts.valid} of {counts.requested} tasks answered and valid", style="default")
    if counts.attempted < counts.requested:
        text.append(f", {counts.attempted} attempted", style="default")
    if manifest.concurrency > 1:
        text.append(f"; latencies under {manifest.concurrency} requests at once", style="default")
    if manifest.stop_reason:
        text.append(f"; stopped: {manifest.stop_reason.replace('_', ' ')}", style="default")
        if manifest.stop_reason == "cap_reached":
            text.append(f" (${manifest.ledger.cap_usd:g})", style="default")
    if manifest.error:
        text.append(f"; {manifest.error}", style="default")
        if manifest.message and manifest.status is RunStatus.CRASHED:
            text.append(f": {manifest.message}", style="default")
    return text


def comparison(
    runs: Sequence[tuple[Manifest, Summary | None]], killed: Collection[str] = ()
) -> Table:
    """The runs of a sweep, in the order they were started, with what differs between them.

    Args:
        runs: manifest and summary of each.
        killed: the names of those that say they are running, and are not.
    """
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("run")
    settings = differing_overrides([manifest for manifest, _ in runs])
    varying = list(dict.fromkeys(field for overrides in settings for field in overrides))
    for field in varying:
        table.add_column(field, overflow="fold")
    for heading in ("valid", *_headings(), "identity", "status"):
        table.add_column(heading, justify="right")
    for index, (manifest, summary) in enumerate(runs):
        cells = [settings[index].get(field, "") for field in varying]
        metrics = _metrics(summary) if summary else [""] * len(_headings())
        valid = f"{manifest.counts.valid}/{manifest.counts.requested}"
        status = _status(manifest, killed=manifest.run in killed)
        table.add_row(
            _number_of(manifest, index),
            *map(Text, cells),
            valid,
            *metrics,
            _identity(manifest),
            status,
        )
    return table


def _number_of(manifest: Manifest, index: int) -> str:
    """A run's number in its sweep, by its directory's name: others may be missing."""
    number = manifest.run.partition("-")[0]
    return number if number.isdecimal() else str(index)


def _status(manifest: Manifest, *, killed: bool) -> Text:
    """How a run ended; a killed process leaves a manifest that says running."""
    if killed:
        return Text("killed", style="red")
    return Text(manifest.status.value, style=_STYLE.get(manifest.status, "red"))


def _identity(manifest: Manifest) -> Text:
    verdict = manifest.identity.status.value if manifest.identity else ""
    return Text(verdict.replace("_", " "), style="bold red" if verdict == "contradicted" else "")


def number(value: float | None) -> str:
    """A number for a table; what is unknown stays empty."""
    return "" if value is None else f"{value:.3f}"
