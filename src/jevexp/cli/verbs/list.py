"""`jevexp list`: the runs on disk, newest first."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from jevexp.cli import tables
from jevexp.cli.console import make_console
from jevexp.core.record import Summary
from jevexp.errors import InputError
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.store.finding import runs_below

_STYLE = {RunStatus.COMPLETE: "green", RunStatus.RUNNING: "yellow"}


class Listed(NamedTuple):
    """One run on disk."""

    directory: RunDirectory
    manifest: Manifest
    summary: Summary | None


def main(argv: Sequence[str]) -> int:
    """Print the runs; 0 also when there is none, 1 when one cannot be read.

    Raises:
        InputError: the folder of runs is not there.
    """
    arguments = _parser().parse_args(argv)
    if not arguments.outputs.is_dir():
        raise InputError(f"{arguments.outputs}: no such folder; run something, or give --outputs")
    runs, unreadable = _read(arguments.outputs)
    chosen = [run for run in runs if _matches(run.manifest, arguments)]
    console = make_console()
    if chosen:
        console.print(_table(arguments.outputs, chosen))
    console.print(Text(f"{len(chosen)} of {len(runs)} runs in {arguments.outputs}"))
    for line in unreadable:
        make_console(stderr=True).print(Text(f"not readable: {line}", style="red"))
    return 1 if unreadable else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jevexp list", description="The runs on disk, newest first."
    )
    parser.add_argument(
        "--outputs",
        type=Path,
        default=Path("outputs"),
        metavar="DIR",
        help="the folder of runs (default: outputs)",
    )
    parser.add_argument(
        "--status", choices=[status.value for status in RunStatus], help="only runs that ended so"
    )
    parser.add_argument("--dataset", metavar="NAME", help="only runs on this dataset")
    parser.add_argument("--model", metavar="NAME", help="only runs of this model or alias")
    return parser


def _read(outputs: Path) -> tuple[list[Listed], list[str]]:
    """The runs, newest first, and why others cannot be read."""
    runs, unreadable = [], []
    for directory in runs_below(outputs):
        try:
            runs.append(Listed(directory, directory.read_manifest(), directory.read_summary()))
        except InputError as error:
            unreadable.append(str(error))
    runs.sort(key=lambda run: (run.manifest.started, str(run.directory.path)), reverse=True)
    return runs, unreadable


def _matches(manifest: Manifest, arguments: argparse.Namespace) -> bool:
    model = manifest.model
    return (
        arguments.status in (None, manifest.status)
        and arguments.dataset in (None, manifest.dataset.name)
        and arguments.model in (None, model.requested, model.declared.name)
    )


def _table(outputs: Path, runs: Sequence[Listed]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("run", overflow="fold")
    table.add_column("status")
    for heading in ("valid", "accuracy", "Brier", "p50 s"):
        table.add_column(heading, justify="right")
    for directory, manifest, summary in runs:
        counts = manifest.counts
        table.add_row(
            Text(str(directory.path.relative_to(outputs))),
            Text(manifest.status.value, style=_STYLE.get(manifest.status, "red")),
            f"{counts.valid}/{counts.requested}",
            *_headline(summary),
        )
    return table


def _headline(summary: Summary | None) -> list[str]:
    if summary is None:
        return [""] * 3
    return [tables.number(summary.number(name)) for name in ("accuracy", "brier_mean", "p50_s")]
