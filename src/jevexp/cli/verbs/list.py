"""`jevexp list`: the runs on disk, newest first."""

from collections.abc import Sequence

from rich.text import Text

from jevexp.cli.console import add_outputs, check_outputs, make_console, make_parser, make_table
from jevexp.cli.run_view import number, status_text
from jevexp.errors import InputError
from jevexp.store import RunStatus
from jevexp.store.finding import runs_below


def main(argv: Sequence[str]) -> int:
    """Print the runs; 0 also when there is none, 1 when one cannot be read.

    Raises InputError: the folder of runs is not there.
    """
    parser = make_parser("list", "The runs on disk, newest first.")
    add_outputs(parser, "the folder of runs (default: outputs)")
    parser.add_argument(
        "--status", choices=[status.value for status in RunStatus], help="only runs that ended so"
    )
    parser.add_argument("--dataset", metavar="NAME", help="only runs on this dataset")
    parser.add_argument("--model", metavar="NAME", help="only runs of this model or alias")
    arguments = parser.parse_args(argv)
    outputs = arguments.outputs
    check_outputs(outputs)
    runs, unreadable = [], []
    for directory in runs_below(outputs):
        try:
            runs.append((directory, directory.read_manifest(), directory.read_summary()))
        except InputError as error:
            unreadable.append(str(error))
    runs.sort(key=lambda run: (run[1].started, str(run[0].path)), reverse=True)
    table = make_table("run", "status", ">valid", ">accuracy", ">Brier", ">p50 s")
    for directory, manifest, summary in runs:
        models = (None, manifest.model.requested, manifest.model.declared.name)
        if (
            arguments.status in (None, manifest.status)
            and arguments.dataset in (None, manifest.dataset.name)
            and arguments.model in models
        ):
            names = ("accuracy", "brier_mean", "p50_s")
            table.add_row(
                Text(str(directory.path.relative_to(outputs))),
                status_text(manifest),
                f"{manifest.counts.valid}/{manifest.counts.requested}",
                *(number(summary.number(name)) if summary else "" for name in names),
            )
    console = make_console()
    if table.rows:
        console.print(table)
    console.print(Text(f"{len(table.rows)} of {len(runs)} runs in {outputs}"))
    for line in unreadable:
        make_console(stderr=True).print(Text(f"not readable: {line}", style="red"))
    return 1 if unreadable else 0
