"""Tells the tracker about a finished run; its troubles are warnings."""

from rich.console import Console

from jevexp.evidence import RunDirectory
from jevexp.settings import Settings


class Tracking:
    """Logs a complete run directory where the settings say."""

    def __init__(self, settings: Settings, console: Console) -> None:
        self._settings = settings
        self._console = console

    def __call__(self, directory: RunDirectory) -> None:
        """Log the run; a failure is printed and changes nothing."""
