"""`jevexp verify`: prove run directories again, from nothing but their own files."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from jevexp.cli.console import make_console, print_json
from jevexp.cli.verification_view import print_report
from jevexp.errors import InputError
from jevexp.store.directory import MANIFEST, RESULTS
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
    roots = [root for path in arguments.runs for root in _roots(path)]
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


def _roots(path: Path) -> list[Path]:
    """The run at `path`, or the runs right below it, in the order of a sweep."""
    if _is_run(path):
        return [path]
    if not path.is_dir():
        raise InputError(f"{path}: no such folder; give a run directory, or a sweep's")
    try:
        below = [entry for entry in path.iterdir() if not entry.is_symlink() and _is_run(entry)]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    if not below:
        raise InputError(f"{path}: no run here and none right below: {MANIFEST} is missing")
    return sorted(below, key=_order)


def _is_run(path: Path) -> bool:
    """Whether a run has begun there; one that was killed early has no manifest yet."""
    return any((path / name).is_symlink() or (path / name).exists() for name in (MANIFEST, RESULTS))


def _order(path: Path) -> tuple[int, str]:
    number = path.name.partition("-")[0]
    return (int(number) if number.isdecimal() and len(number) < 9 else 0, path.name)
