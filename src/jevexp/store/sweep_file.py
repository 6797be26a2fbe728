"""`sweep.json`: which runs a sweep consists of, so that it can be gone on with as a whole."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from jevexp.core.json import dumps
from jevexp.errors import InputError
from jevexp.settings import Settings
from jevexp.settings.base import Usd
from jevexp.untrusted.files import read_document
from jevexp.untrusted.writing import replace

SWEEP_FILE = "sweep.json"


class PlannedRun(BaseModel):
    """One run: its resolved configuration, and what an earlier sweep left of it.

    `ended_in` is the directory in which the run ended, `goes_on_with` the one whose answers it is
    to take over: until it has done so, they are nowhere else.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    config: dict[str, Any]
    ended_in: str | None = None
    goes_on_with: str | None = None


class SweepFile(BaseModel):
    """The runs in their order, and what earlier sittings of the sweep came to.

    `resumed` is the sweep that this one goes on with, null for a first one. `charged_usd` is what
    earlier sittings were charged in ledgers of their own, in US dollars.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = 1
    resumed: str | None = None
    charged_usd: Usd = 0.0
    runs: list[PlannedRun]

    @classmethod
    def of(cls, settings: Sequence[Settings]) -> "SweepFile":
        """A first sweep over these settings."""
        return cls(runs=[PlannedRun(config=one.resolved()) for one in settings])

    def write(self, directory: Path) -> None:
        """Write the file into a sweep's directory."""
        replace(directory / SWEEP_FILE, dumps(self.model_dump(mode="json"), indent=2).encode())


def read_sweep_file(directory: Path) -> SweepFile:
    """Read the file of a sweep.

    Raises:
        InputError: there is none, or it is not one.
    """
    path = directory / SWEEP_FILE
    try:
        return SweepFile.model_validate_json(read_document(path, follow_links=False))
    except FileNotFoundError as error:
        raise InputError(
            f"resume: {directory}: is no run, and no sweep whose runs were fixed beforehand: "
            f"{SWEEP_FILE} is missing"
        ) from error
    except OSError as error:
        raise InputError(f"resume: {path}: {error.strerror}") from error
    except ValidationError as error:
        raise InputError(f"resume: {path}: is not a sweep's file") from error
    except ValueError as error:
        raise InputError(f"resume: {path}: {error}") from error
