"""`jevexp verify RUN...`: prove a run again from its files, offline."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from jevexp.cli.console import make_console, print_json
from jevexp.cli.verification_view import print_report
from jevexp.errors import InputError
from jevexp.store.finding import run_directories
from jevexp.verification import Report, State, verify_run
from jevexp.verification.receipt import check_receipt, read_receipt

# The worst of several runs decides.
_EXIT_STATUSES = {State.VERIFIED: 0, State.INCOMPLETE: 3, State.FAILED: 1}
_WORST = (State.FAILED, State.INCOMPLETE, State.VERIFIED)


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
