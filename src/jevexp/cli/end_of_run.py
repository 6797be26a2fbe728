"""What is printed when a run or a sweep has ended, and the exit status that goes with it."""

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from jevexp.cli import tables
from jevexp.cli.identity_view import identity_table, run_lines
from jevexp.cli.resumed_settings import resume_command
from jevexp.core.identity import ClaimStatus
from jevexp.core.record import Summary
from jevexp.errors import InputError
from jevexp.harness.summary import percentile
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.store.directory import MANIFEST
from jevexp.store.finding import SWEEP_FILE, read_sweep_file, sweep_members, sweep_order

_MOST_FAULTS = 3
# Above this share outside the options, the model did not mean to choose one of them.
STRAY_MASS = 0.5


class Refused(InputError):
    """The run was refused before its first request; its directory holds no answer."""


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
    """Print one run that has ended; its exit status.

    Raises:
        Refused: it was refused.
    """
    path = directory.path
    if manifest.status is RunStatus.REFUSED:
        if manifest.identity and manifest.identity.status is ClaimStatus.CONTRADICTED:
            console.print(identity_table(manifest.identity))
        raise Refused(manifest.message or "refused")
    if summary:
        console.print(tables.results(manifest, summary))
    if manifest.status is RunStatus.RUNNING:
        # Its counts are those of its start.
        kept = sum(1 for _ in directory.records())
        console.print(f"never completed: {kept} of {manifest.counts.requested} tasks have a record")
    else:
        console.print(tables.verdict(manifest))
    for line in run_lines(manifest):
        console.print(line)
    if (stray := _stray_mass(directory)) is not None and stray > STRAY_MASS:
        console.print(
            Text.assemble(
                ("  warning: ", "bold yellow"),
                f"half of the answers put at least {stray:.0%} of their probability on none of the "
                "options; is it the right model and chat template?",
            )
        )
    for fault in _failures(directory):
        console.print(Text(f"  {fault}"))
    _print_place(console, "run", path)
    if manifest.counts.answered < manifest.counts.requested:
        _print_resume(console, path, [manifest.config.resolved])
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
    broken = []
    killed = set()
    for directory in sorted([*elsewhere, *sweep_members(path)], key=sweep_order):
        try:
            run = RunDirectory(directory)
            manifest, summary = run.read_manifest(), run.read_summary()
            if manifest.status is RunStatus.RUNNING and not run.in_use:
                killed.add(manifest.run)
                manifest = _counted(manifest, run)
            runs.append((manifest, summary))
        except InputError as error:
            broken.append(str(error))
    if runs:
        console.print(tables.comparison(runs, killed))
    for manifest, _ in runs:
        if manifest.status is not RunStatus.COMPLETE:
            reason = f" {manifest.message}" if manifest.message else ""
            verdict = tables.verdict(manifest, killed=manifest.run in killed)
            console.print(Text(f"{manifest.run}: ").append_text(verdict).append(reason))
    for line in broken:
        console.print(Text(f"not readable: {line}", style="red"))
    complete = sum(manifest.status is RunStatus.COMPLETE for manifest, _ in runs)
    console.print(f"{complete} of {planned} runs complete", highlight=False)
    if (never := planned - len(runs) - len(broken)) > 0:
        console.print(Text(f"{never} never began", style="red"))
    _print_place(console, "sweep", path)
    if (killed or never > 0) and (path / SWEEP_FILE).exists():
        _print_resume(console, path, [run.config for run in read_sweep_file(path).runs])
    return 0 if complete == planned else 1


def _counted(manifest: Manifest, directory: RunDirectory) -> Manifest:
    """The manifest of a killed run, with what its results hold; it could not count them any more.

    Raises:
        InputError: they are not readable.
    """
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


def _stray_mass(directory: RunDirectory) -> float | None:
    """Median over the answers of the probability outside the options, where providers report it."""
    masses = [
        mass
        for record in directory.records()
        if isinstance(mass := (record.runtime or {}).get("off_option_mass"), float)
    ]
    return percentile(masses, 0.5)


def _failures(directory: RunDirectory) -> list[str]:
    """What went wrong with single tasks, the most frequent first."""
    faults = Counter(
        record.error or "unknown error" if not record.ok else record.schema_error or "invalid"
        for record in directory.records()
        if not (record.ok and record.valid)
    )
    shown = [f"{count} × {fault}" for fault, count in faults.most_common(_MOST_FAULTS)]
    rest = len(faults) - len(shown)
    return [*shown, f"and {rest} more kinds of failure"] if rest else shown


def _print_resume(console: Console, path: Path, configs: Sequence[dict[str, Any]]) -> None:
    # Where a value fits on no command line, the short command names the field.
    command = resume_command(path, configs) or f"jevexp resume={shlex.quote(str(path))}"
    console.print(Text(f"go on with it: {command}"))


def _print_place(console: Console, what: str, path: Path) -> None:
    console.print(Text(f"{what}: {path}"))
