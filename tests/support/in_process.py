"""Whole runs in this process, for tests that bring the provider."""

from pathlib import Path

from jevexp.core.record import Record
from jevexp.run import planning, running
from tests.support.compose import compose


class Silent:
    """An observer that has nothing to say."""

    def started(self, plan: planning.Plan) -> None:
        """Nothing."""

    def recorded(self, record: Record) -> None:
        """Nothing."""

    def stopping(self) -> None:
        """Nothing."""

    def finished(self) -> None:
        """Nothing."""


def run_here(folder: Path, *overrides: str) -> Path:
    """The directory of a finished, untracked run of `jevexp OVERRIDES`."""
    settings = compose("tracking=none", *overrides)
    launch = planning.Launch(folder / "run", overrides=overrides)
    running.run(planning.plan(settings), launch, Silent(), lambda *_: None)
    return launch.directory
