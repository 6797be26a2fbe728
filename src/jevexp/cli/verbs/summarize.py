"""`jevexp summarize RUN`: a run's summary computed again, and compared."""

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from jevexp.analysis.runs import read_records
from jevexp.cli.console import make_console, make_parser, print_json
from jevexp.cli.run_view import results_table
from jevexp.datasets import planned_tasks
from jevexp.errors import InputError
from jevexp.harness.harness import make_harness
from jevexp.settings import Harness
from jevexp.store import RunDirectory
from jevexp.store.directory import SUMMARY
from jevexp.verification.check import differences

_MOST_SHOWN = 5


def main(argv: Sequence[str]) -> int:
    """Print the summary; 0 when it is the stored one, 1 when it is not.

    Raises InputError: it is no run, its tasks cannot be had, or the harness is not here.
    """
    parser = make_parser(
        "summarize",
        "Compute a run's summary again from its results and compare it with the stored one: "
        "status 0 when they are equal, 1 when they differ.",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument(
        "--harness", choices=("native", "upstream"), help="whose summary (default: the run's own)"
    )
    parser.add_argument(
        "--harness-path", metavar="DIR", help="a git checkout of the pinned harness"
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    arguments = parser.parse_args(argv)
    directory = RunDirectory(arguments.run)
    manifest = directory.read_manifest()
    # Only a person names a folder to run code from; the manifest may be anybody's.
    fields = {"name": arguments.harness or manifest.harness.name, "path": arguments.harness_path}
    harness = make_harness(Harness.of(fields, at="harness"))
    tasks = planned_tasks(manifest)
    records = read_records(directory)
    try:
        summary = harness.summarize(tasks, records, ledger_charged_usd=manifest.ledger.charged_usd)
    except ValueError as error:
        raise InputError(f"{directory.path}: the results do not fit the tasks: {error}") from error
    if arguments.json:
        print_json(summary.plain())
    else:
        make_console().print(results_table(manifest, summary))
    # With --json, standard output is the summary alone.
    console = make_console(stderr=arguments.json)
    stored = directory.read_summary()
    if stored is None:
        console.print(Text(f"no {SUMMARY} to compare with: the run ended without one"))
        return 1
    different = list(differences(stored.plain(), summary.plain()))
    if not different:
        console.print(Text(f"the same as {SUMMARY}"))
        return 0
    for line in different[:_MOST_SHOWN]:
        console.print(Text(f"differs from {SUMMARY}: {line}", style="red"))
    if len(different) > _MOST_SHOWN:
        console.print(Text(f"and in {len(different) - _MOST_SHOWN} more places", style="red"))
    return 1
