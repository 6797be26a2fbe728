"""`jevexp receipt RUN`: hashes and numbers of a verified run, to hand over."""

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from jevexp.cli.console import make_console, make_parser
from jevexp.cli.verbs.verify import EXIT_STATUSES, print_report
from jevexp.verification import Result, State, verify_run
from jevexp.verification.receipt import make_receipt, write


def main(argv: Sequence[str]) -> int:
    """Print the receipt of a verified run, and 0; else say why not: 1 failed, 3 incomplete.

    Raises InputError: it is no run directory.
    """
    parser = make_parser(
        "receipt",
        "Verify a run and print its receipt: hashes of everything and the headline numbers, "
        "without any task's text. `jevexp verify RUN --receipt FILE` checks it.",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("--tasks", type=Path, metavar="PATH", help="as for `jevexp verify`")
    arguments = parser.parse_args(argv)
    report = verify_run(arguments.run, tasks=arguments.tasks)
    # Standard output is the receipt alone.
    console = make_console(stderr=True)
    if report.state is not State.VERIFIED:
        print_report(console, report, verbose=False)
        console.print("no receipt: only a run that verifies gets one")
        return EXIT_STATUSES[report.state]
    for check in report.checks:
        if check.result is Result.NOT_CHECKED:
            console.print(Text(f"{check.name} not checked: {check.reason}"))
    sys.stdout.write(write(make_receipt(arguments.run)))
    return 0
