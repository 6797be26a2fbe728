"""`jevexp` and `python -m jevexp`: find the verb, run it, turn errors into exit statuses."""

import importlib
import sys
from collections.abc import Sequence

from rich.text import Text

from jevexp.cli.console import make_console, print_whatever_the_encoding
from jevexp.errors import InputError
from jevexp.harness.interrupts import Interrupted
from jevexp.untrusted.files import RefusedPath
from jevexp.untrusted.owners import permissions

# One file a verb below jevexp.cli; each has a function main(arguments) -> exit status.
VERBS = (
    "check",
    "compare",
    "data",
    "export",
    "gate",
    "identify",
    "ledger",
    "list",
    "plan",
    "receipt",
    "report",
    "summarize",
    "ui",
    "verify",
)
# A module named like a builtin would read as one; report.py is what a run prints at its end.
MODULES = {"list": "listing", "report": "page"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status.

    0: every requested task was answered and valid. 1: failed or incomplete, evidence kept.
    2: unusable input, nothing written or sent. 129, 130 and 143: interrupted, evidence kept.
    """
    print_whatever_the_encoding()
    given = list(sys.argv[1:] if arguments is None else arguments)
    verb, rest = (given[0], given[1:]) if given and given[0] in (*VERBS, "run") else ("run", given)
    try:
        # Runs and their reports hold tasks and answers; a configuration may share them.
        with permissions(group=False):
            status: int = importlib.import_module(f"jevexp.cli.{MODULES.get(verb, verb)}").main(
                rest
            )
    except InputError as error:
        make_console(stderr=True).print(Text.assemble(("error:", "bold red"), f" {error}"))
        return 2
    except RefusedPath as error:
        refused = InputError(f"{error.filename}: {error.strerror}")
        make_console(stderr=True).print(Text.assemble(("error:", "bold red"), f" {refused}"))
        return 2
    except Interrupted as signalled:
        return signalled.exit_status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output is gone, as in `jevexp data list | head`.
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
