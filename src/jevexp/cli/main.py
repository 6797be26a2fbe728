"""`jevexp` and `python -m jevexp`: find the verb, run it, turn errors into exit statuses."""

import importlib
import sys
from collections.abc import Sequence

from rich.text import Text

from jevexp.cli.console import make_console, print_whatever_the_encoding
from jevexp.cli.verbs import verb_files
from jevexp.errors import InputError
from jevexp.harness.interrupts import Interrupted
from jevexp.untrusted.files import RefusedPath, permissions


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status.

    0: every requested task was answered and valid. 1: failed or incomplete, evidence kept.
    2: unusable input, nothing written or sent. 129, 130 and 143: interrupted, evidence kept.
    """
    print_whatever_the_encoding()
    words = list(sys.argv[1:] if arguments is None else arguments)
    verb = words.pop(0) if words and words[0] in verb_files() else "run"
    try:
        # Runs and their reports hold tasks and answers; a configuration may share them.
        with permissions(group=False):
            status: int = importlib.import_module(f"jevexp.cli.verbs.{verb}").main(words)
    except (InputError, RefusedPath) as error:
        if isinstance(error, RefusedPath):
            error = InputError(f"{error.filename}: {error.strerror}")
        make_console(stderr=True).print(Text.assemble(("error:", "bold red"), f" {error}"))
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
