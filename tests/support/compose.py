"""Settings as a command line composes them."""

from hydra._internal.utils import get_args_parser

from jevexp.cli.compose import compose_command
from jevexp.settings import Settings


def compose(*overrides: str) -> Settings:
    """The settings of `jevexp OVERRIDES`."""
    (settings,) = compose_command(get_args_parser().parse_args(list(overrides))).settings
    return settings
