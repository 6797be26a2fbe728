"""`jevexp verify RUN...`: prove a run again from its files, offline."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from jevexp.cli.console import make_console, make_parser, make_table, print_json
from jevexp.errors import InputError
from jevexp.store.finding import run_directories
from jevexp.verification import Check, Report, Result, State, verify_run
from jevexp.verification.receipt import check_receipt, read_receipt

# Of several runs the worst decides, and it stands first.
EXIT_STATUSES = {State.FAILED: 1, State.INCOMPLETE: 3, State.VERIFIED: 0}
_STYLE = {Result.PASS: "green", Result.FAIL: "bold red", Result.NOT_CHECKED: "yellow"}
_STATE = {State.VERIFIED: "bold green", State.FAILED: "bold red", State.INCOMPLETE: "bold yellow"}
_MOST_LINES = 5
# Of the files that no checksum covers.
_MOST_NAMES = 4


def main(argv: Sequence[str]) -> int:
    """Print a table of checks a run; 0 verified, 1 one failed, 3 none failed, one is incomplete.

    Raises InputError: a path is no run and no sweep, or the receipt is none.
    """
    parser = make_parser(
        "verify",
        "Prove finished runs again, offline: files, requests, answers, scores, costs and sums. "
        "Status 0: verified. 1: a check failed. 3: nothing failed, but the run never ended.",
    )
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="a run directory, or a sweep's"
    )
    parser.add_argument(
        "--receipt", type=Path, metavar="FILE", help="compare the run with its receipt"
    )
    parser.add_argument(
        "--tasks",
        type=Path,
        metavar="PATH",
        help="the task file that was run, or the folder of them, where it is not where it was",
    )
    parser.add_argument("--verbose", action="store_true", help="all checks, also of several runs")
    parser.add_argument("--json", action="store_true", help="print the checks as JSON")
    arguments = parser.parse_args(argv)
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
    return next(status for state, status in EXIT_STATUSES.items() if state in states)


def print_report(console: Console, report: Report, *, verbose: bool) -> None:
    """Print one run: a row a check, then what failed, what was not checked, and the verdict.

    Args:
        console: where to.
        report: the run.
        verbose: also the checks that passed.
    """
    console.print(Text(str(report.path)), style="bold")
    if verbose:
        table = make_table("check", "covers", "result", ">looked at")
        for check in report.checks:
            count = "" if check.result is Result.NOT_CHECKED else f"{check.count:,}"
            result = Text(check.result.value, style=_STYLE[check.result])
            table.add_row(check.name, check.covers, result, count)
        console.print(table)
    for check in report.checks:
        _print_findings(console, check, verbose=verbose)
    if verbose and (names := report.not_covered):
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        shown = ", ".join(names[:_MOST_NAMES])
        console.print(Text(f"  not covered by checksums: {shown}{more}"))
    console.print(_verdict(report))


def _print_findings(console: Console, check: Check, *, verbose: bool) -> None:
    for failure in check.failures[:_MOST_LINES]:
        message = f"{failure.place}: {failure.message}"
        console.print(Text.assemble((f"  {check.name} failed: ", "red"), message))
    if check.failed > _MOST_LINES:
        more = check.failed - _MOST_LINES
        console.print(Text(f"  {check.name} failed: and in {more} more places"))
    if not verbose:
        return
    if check.result is Result.NOT_CHECKED:
        label = (f"  {check.name} not checked: ", "yellow")
        console.print(Text.assemble(label, check.reason or ""))
    for note in check.notes[:_MOST_LINES]:
        console.print(Text(f"  {check.name}: {note}"))


def _verdict(report: Report) -> Text:
    line = Text(report.state.value, style=_STATE[report.state])
    if report.state is State.INCOMPLETE:
        return line.append_text(Text(f": {report.incomplete}; no check failed"))
    failed = [check.name for check in report.checks if check.result is Result.FAIL]
    unchecked = [check.name for check in report.checks if check.result is Result.NOT_CHECKED]
    if failed:
        line.append(f": {', '.join(failed)}", style="default")
    elif report.status:
        line.append(f": a run that is {report.status}", style="default")
    if unchecked:
        line.append(f"; not checked: {', '.join(unchecked)}", style="default")
    return line
