"""What verifying a run came to, on the terminal."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jevexp.verification import Check, Report, Result, State

_STYLE = {Result.PASS: "green", Result.FAIL: "bold red", Result.NOT_CHECKED: "yellow"}
_STATE = {State.VERIFIED: "bold green", State.FAILED: "bold red", State.INCOMPLETE: "bold yellow"}
_MOST_LINES = 5
# Of a log that is not there to be read here.
_MOST_NAMES = 4


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
        line.append_text(Text(f": {report.incomplete}; nothing that is there fails"))
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
