"""`jevexp verify RUN...`: prove a run again from its files, offline."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jevexp.cli.console import make_console, print_json
from jevexp.errors import InputError
from jevexp.store.finding import run_directories
from jevexp.verification import Check, Report, Result, State, verify_run
from jevexp.verification.receipt import check_receipt, read_receipt

# The worst of several runs decides.
_EXIT_STATUSES = {State.VERIFIED: 0, State.INCOMPLETE: 3, State.FAILED: 1}
_WORST = (State.FAILED, State.INCOMPLETE, State.VERIFIED)
_STYLE = {Result.PASS: "green", Result.FAIL: "bold red", Result.NOT_CHECKED: "yellow"}
_STATE = {State.VERIFIED: "bold green", State.FAILED: "bold red", State.INCOMPLETE: "bold yellow"}
_MOST_LINES = 5
# Of the files that no checksum covers.
_MOST_NAMES = 4


def main(argv: Sequence[str]) -> int:
    """Print a table of checks a run; 0 verified, 1 one failed, 3 none failed, one is incomplete.

    Raises:
        InputError: a path is no run and no sweep, or the receipt is none.
    """
    arguments = _parser().parse_args(argv)
    roots = [run.path for path in arguments.runs for run in run_directories(path, begun=True)]
    receipt = None
    if arguments.receipt is not None:
        if len(roots) > 1:
            raise InputError(f"--receipt: a receipt is of one run, found {len(roots)}")
        receipt = read_receipt(arguments.receipt)
    console = make_console()
    reports: list[Report] = []
    for root in roots:
        # On a terminal alone; a hundred thousand tasks take minutes.
        with make_console(stderr=True).status("verifying"):
            report = verify_run(root, tasks=arguments.tasks)
            if receipt is not None:
                report = check_receipt(report, receipt)
        reports.append(report)
        if not arguments.json:
            print_report(console, report, verbose=arguments.verbose or len(roots) == 1)
    if arguments.json:
        print_json({"runs": [report.as_dict() for report in reports]})
    states = {report.state for report in reports}
    return _EXIT_STATUSES[next(state for state in _WORST if state in states)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jevexp verify",
        description="Prove finished runs again, offline: files, requests, answers, scores, costs "
        "and sums. Status 0: verified. 1: a check failed. 3: nothing failed, but the run never "
        "ended.",
    )
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="a run directory, or a sweep's"
    )
    parser.add_argument(
        "--receipt", type=Path, metavar="FILE", help="hold the run against its receipt"
    )
    parser.add_argument(
        "--tasks",
        type=Path,
        metavar="PATH",
        help="the task file that was run, or the folder of them, where it is not where it was",
    )
    parser.add_argument("--verbose", action="store_true", help="all checks, also of several runs")
    parser.add_argument("--json", action="store_true", help="print the checks as JSON")
    return parser


def print_report(console: Console, report: Report, *, verbose: bool) -> None:
    """Print one run: a row a check, then what failed, what was not checked, and the verdict.

    Args:
        console: where to.
        report: the run.
        verbose: also the checks that passed.
    """
    console.print(Text(str(report.path)), style="bold")
    if verbose:
        console.print(_table(report))
    for check in report.checks:
        _print_findings(console, check, verbose=verbose)
    if verbose and report.not_covered:
        console.print(Text(f"  not covered by checksums: {_names(report.not_covered)}"))
    console.print(_verdict(report))


def _table(report: Report) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("check", "covers", "result"):
        table.add_column(heading)
    table.add_column("looked at", justify="right")
    for check in report.checks:
        result = check.result
        count = "" if result is Result.NOT_CHECKED else f"{check.count:,}"
        table.add_row(check.name, check.covers, Text(result.value, style=_STYLE[result]), count)
    return table


def _print_findings(console: Console, check: Check, *, verbose: bool) -> None:
    for failure in check.failures[:_MOST_LINES]:
        line = Text.assemble((f"  {check.name} failed: ", "red"))
        console.print(line.append_text(Text(f"{failure.place}: {failure.message}")))
    if check.failed > _MOST_LINES:
        console.print(
            Text(f"  {check.name} failed: and in {check.failed - _MOST_LINES} more places")
        )
    if not verbose:
        return
    if check.result is Result.NOT_CHECKED:
        console.print(
            Text.assemble((f"  {check.name} not checked: ", "yellow"), Text(check.reason or ""))
        )
    for note in check.notes[:_MOST_LINES]:
        console.print(Text(f"  {check.name}: {note}"))


def _names(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"


def _verdict(report: Report) -> Text:
    line = Text(report.state.value, style=_STATE[report.state])
    if report.state is State.INCOMPLETE:
        line.append_text(Text(f": {report.incomplete}; no check failed"))
        return line
    failed = [check.name for check in report.checks if check.result is Result.FAIL]
    unchecked = [check.name for check in report.checks if check.result is Result.NOT_CHECKED]
    if failed:
        line.append(f": {', '.join(failed)}", style="default")
    elif report.status:
        line.append(f": a run that is {report.status}", style="default")
    if unchecked:
        line.append(f"; not checked: {', '.join(unchecked)}", style="default")
    return line
