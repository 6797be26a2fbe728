"""Command lines of overrides, for the verbs that look at a run without running it."""

from argparse import Namespace
from collections.abc import Sequence

from hydra._internal.utils import get_args_parser


def overrides_of(arguments: Sequence[str], verb: str, what: str) -> Namespace:
    """Parse a verb's command line with Hydra's own parser.

    Raises:
        SystemExit: with status 0 after printing the verb's help, with 2 for an unknown flag.
    """
    parser = get_args_parser()
    parser.prog = f"jevexp {verb}"
    # Hydra wants its flags before the overrides; a person need not.
    parsed = parser.parse_intermixed_args(list(arguments))
    if parsed.help:
        print(f"usage: jevexp {verb} [-m] [--config-dir DIR] [GROUP=OPTION | FIELD=VALUE ...]")
        print(f"\n{what}\n\nGroups, options and fields are those of a run: see jevexp --help.")
        raise SystemExit(0)
    return parsed
