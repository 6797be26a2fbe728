"""Runs on the terminal: results and identity, how a run or a sweep ended, and its exit status."""

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from jevexp.analysis.comparison import RunStatistics
from jevexp.analysis.metrics import METRICS
from jevexp.cli.console import make_table
from jevexp.cli.failures import ROUNDS, Failures, are_rounded, may_round
from jevexp.core.identity import ClaimStatus, IdentityReport, in_words
from jevexp.core.record import GroupSummary, Summary
from jevexp.errors import InputError
from jevexp.harness.summary import percentile
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.store.directory import MANIFEST
from jevexp.store.finding import SWEEP_FILE, read_sweep_file, sweep_members, sweep_order
from jevexp.store.manifest import differing_overrides

# Above this share outside the options, the model did not mean to choose one of them.
STRAY_MASS = 0.5
_HEADINGS = [f">{metric.heading}" for metric in METRICS.values()] + [">p50 s"]
_STYLE = {
    "confirmed": "green",
    "contradicted": "bold red",
    "warning": "bold yellow",
    "contradiction": "bold red",
}


class Refused(InputError):
    """The run was refused before its first request; its directory holds no answer."""


def number(value: float | None) -> str:
    """A number for a table; what is unknown stays empty."""
    return "" if value is None else f"{value:.3f}"


def ranked(runs: Sequence[RunStatistics]) -> list[tuple[int, RunStatistics]]:
    """The runs with their indices, the most accurate first."""
    return sorted(
        enumerate(runs), key=lambda pair: -(pair[1].accuracy.value if pair[1].accuracy else -1.0)
    )


def status_text(manifest: Manifest, *, killed: bool = False) -> Text:
    """How a run ended; a killed process leaves a manifest that says running."""
    if killed:
        return Text("killed", style="red")
    styles = {RunStatus.COMPLETE: "green", RunStatus.RUNNING: "yellow"}
    return Text(manifest.status.value, style=styles.get(manifest.status, "red"))


def results_table(manifest: Manifest, summary: Summary) -> Table:
    """The results of one run: a row for all tasks and one a family."""
    table = make_table("tasks", ">valid", *_HEADINGS, ">p95 s", title=manifest.title)
    for name, group in {"all": summary, **summary.per_family}.items():
        table.add_row(
            name,
            f"{group.n_valid}/{group.n_planned}",
            *_numbers(group),
            number(group.latency.p95_s),
            style="bold" if group is summary else "",
        )
    return table


def _numbers(group: GroupSummary) -> list[str]:
    metrics = [number(metric.of_summary(group)) for metric in METRICS.values()]
    return [*metrics, number(group.latency.p50_s)]


def _sweep_table(runs: Sequence[tuple[Manifest, Summary | None]], killed: Collection[str]) -> Table:
    """The runs of a sweep, in the order they were started, with what differs between them."""
    # `killed` are the names of those that say they are running, and are not.
    settings = differing_overrides([manifest for manifest, _ in runs])
    varying = list(dict.fromkeys(field for overrides in settings for field in overrides))
    table = make_table("run", *varying, ">valid", *_HEADINGS, ">identity", ">status")
    for index, (manifest, summary) in enumerate(runs):
        # By its directory's name: other runs may be missing.
        place = manifest.run.partition("-")[0]
        identity = manifest.identity.status.value if manifest.identity else ""
        table.add_row(
            place if place.isdecimal() else str(index),
            *(Text(settings[index].get(field, "")) for field in varying),
            f"{manifest.counts.valid}/{manifest.counts.requested}",
            *(_numbers(summary) if summary else [""] * len(_HEADINGS)),
            Text(identity.replace("_", " "), "bold red" if identity == "contradicted" else ""),
            status_text(manifest, killed=manifest.run in killed),
        )
    return table


def _verdict(manifest: Manifest, *, killed: bool = False) -> Text:
    """One line: how the run ended, and how many tasks were answered."""
    counts = manifest.counts
    line = f": {counts.valid} of {counts.requested} tasks answered and valid"
    if counts.attempted < counts.requested:
        line += f", {counts.attempted} attempted"
    if manifest.concurrency > 1:
        line += f"; latencies under {manifest.concurrency} requests at once"
    if manifest.stop_reason:
        line += f"; stopped: {manifest.stop_reason.replace('_', ' ')}"
        if manifest.stop_reason == "cap_reached":
            line += f" (${manifest.ledger.cap_usd:g})"
    if manifest.error:
        line += f"; {manifest.error}"
        if manifest.message and manifest.status is RunStatus.CRASHED:
            line += f": {manifest.message}"
    return status_text(manifest, killed=killed).append(line, style="default")


def _identity_of_run(manifest: Manifest) -> Iterator[Text]:
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
    yield line.append(f" · {manifest.fingerprint.value}" if manifest.fingerprint else "")
    for name, field in identity.contradictions.items():
        declared = "nothing" if field.declared is None else in_words(field.declared)
        observed = ", ".join(
            f"{in_words(observed.value)} ({observed.source})" for observed in field.observed
        )
        yield Text(f"  model.{name}: declared {declared}, found {observed}", style="red")
    yield from identity_findings(identity)


def identity_findings(identity: IdentityReport) -> Iterator[Text]:
    """A line a finding."""
    for finding in identity.findings:
        label = Text(f"  {finding.level}: ", style=_STYLE.get(finding.level, ""))
        yield label.append(finding.message, style="default")


def identity_table(identity: IdentityReport) -> Table:
    """Every field with both sides and where each value came from, contradictions first."""
    table = make_table("field", "verdict", "declared", "observed", "source")
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


def report_run_on_disk(console: Console, path: Path) -> int:
    """Print a run by what its directory holds; its exit status.

    Raises:
        Refused: it was refused.
        InputError: its manifest cannot be read.
    """
    directory = RunDirectory(path)
    if not (path / MANIFEST).exists():
        # The run ended before its first manifest, or its directory is gone; the reason was printed.
        return 1
    return report_run(console, directory, directory.read_manifest(), directory.read_summary())


def report_run(
    console: Console, directory: RunDirectory, manifest: Manifest, summary: Summary | None
) -> int:
    """Print one run that has ended; its exit status. Raises Refused: it was refused."""
    if manifest.status is RunStatus.REFUSED:
        if manifest.identity and manifest.identity.status is ClaimStatus.CONTRADICTED:
            console.print(identity_table(manifest.identity))
        raise Refused(manifest.message or "refused")
    if summary:
        console.print(results_table(manifest, summary))
    if manifest.status is RunStatus.RUNNING:
        # Its counts are those of its start.
        kept = sum(1 for _ in directory.records())
        console.print(f"never completed: {kept} of {manifest.counts.requested} tasks have a record")
    else:
        console.print(_verdict(manifest))
    for line in _identity_of_run(manifest):
        console.print(line)
    for warning in manifest.backend.warnings:
        console.print(Text.assemble(("  warning: ", _STYLE["warning"]), warning))
    if cut := manifest.counts.truncated_words:
        console.print(Text.assemble(("  warning: ", _STYLE["warning"]), cut))
    # Where providers report it: the probability outside the options.
    masses = [
        mass
        for record in directory.records()
        if isinstance(mass := (record.runtime or {}).get("off_option_mass"), float)
    ]
    if (median_mass := percentile(masses, 0.5)) is not None and median_mass > STRAY_MASS:
        console.print(
            Text.assemble(
                ("  warning: ", _STYLE["warning"]),
                f"half of the answers put at least {median_mass:.0%} of their probability on none "
                "of the options; is it the right model and chat template?",
            )
        )
    answers = (
        record.probs_as_returned
        for record in directory.records()
        if may_round(record.status_code, record.probs_source)
    )
    if are_rounded(answers):
        console.print(Text.assemble(("  warning: ", _STYLE["warning"]), ROUNDS))
    failures = Failures(directory, manifest)
    for told in failures.lines():
        console.print(Text(f"  {told}"), soft_wrap=True)
    console.print(Text(f"run: {directory.path}"))
    if manifest.counts.answered < manifest.counts.requested and failures.can_go_on:
        _print_resume(console, directory.path, [manifest.config.resolved])
    return 1 if manifest.exit_status is None else manifest.exit_status


def report_sweep(console: Console, path: Path, planned: int, elsewhere: Sequence[Path] = ()) -> int:
    """Print a sweep's runs side by side; 0 only when all planned runs are complete.

    Args:
        console: where to.
        path: the sweep's directory.
        planned: how many runs it consists of.
        elsewhere: runs of it that ended in an earlier sweep's directory.
    """
    runs = []
    causes: dict[str, list[str]] = {}
    broken = []
    killed = set()
    for directory in sorted([*elsewhere, *sweep_members(path)], key=sweep_order):
        try:
            run = RunDirectory(directory)
            manifest, summary = run.read_manifest(), run.read_summary()
            if manifest.status is RunStatus.RUNNING and not run.in_use:
                killed.add(manifest.run)
                manifest = _counted(manifest, run)
            if manifest.status is not RunStatus.COMPLETE:
                causes[manifest.run] = list(Failures(run, manifest).lines())
            runs.append((manifest, summary))
        except InputError as error:
            broken.append(str(error))
    if runs:
        console.print(_sweep_table(runs, killed))
    for manifest, _ in runs:
        if manifest.status is not RunStatus.COMPLETE:
            reason = f" {manifest.message}" if manifest.message else ""
            verdict = _verdict(manifest, killed=manifest.run in killed)
            console.print(Text(f"{manifest.run}: ").append_text(verdict).append(reason))
            for told in causes[manifest.run]:
                console.print(Text(f"  {told}"), soft_wrap=True)
    for line in broken:
        console.print(Text(f"not readable: {line}", style="red"))
    complete = sum(manifest.status is RunStatus.COMPLETE for manifest, _ in runs)
    console.print(f"{complete} of {planned} runs complete", highlight=False)
    if (never := planned - len(runs) - len(broken)) > 0:
        console.print(Text(f"{never} never began", style="red"))
    console.print(Text(f"sweep: {path}"))
    if (killed or never > 0) and (path / SWEEP_FILE).exists():
        _print_resume(console, path, [run.config for run in read_sweep_file(path).runs])
    return 0 if complete == planned else 1


def _counted(manifest: Manifest, directory: RunDirectory) -> Manifest:
    """A killed run's manifest, with what its results hold; raises InputError."""
    try:
        records = list(directory.records())
    except (OSError, ValueError) as error:
        raise InputError(str(error)) from error
    counts = {
        "attempted": len(records),
        "answered": sum(record.ok for record in records),
        "valid": sum(record.ok and record.valid for record in records),
    }
    return manifest.model_copy(update={"counts": manifest.counts.model_copy(update=counts)})


def _print_resume(console: Console, path: Path, configs: Sequence[dict[str, Any]]) -> None:
    # Importing Hydra takes longer than the verbs need that only want tables.
    from jevexp.cli.resumed_settings import resume_command

    # Where a value fits on no command line, the short command names the field.
    command = resume_command(path, configs) or f"jevexp resume={shlex.quote(str(path))}"
    console.print(Text(f"go on with it: {command}"))
