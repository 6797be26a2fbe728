"""Finding runs: at a path, below the folder of all runs, and in a sweep with its `sweep.json`."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from jevexp.core.json import dumps
from jevexp.errors import InputError
from jevexp.settings.base import Usd
from jevexp.store.checksums import document_sha256
from jevexp.store.directory import MANIFEST, RESULTS, RunDirectory
from jevexp.store.manifest import Resumed
from jevexp.store.records import reason
from jevexp.untrusted.files import read_document
from jevexp.untrusted.writing import replace

# Where a run is put below the folder of all runs, and a run of a sweep; conf/hydra/default.yaml
# says so to Hydra.
_PLACES = ("*/*", "sweeps/*/*/*")
# A number has as many digits as any sweep has runs; a longer one is a name.
_MOST_DIGITS = 8
SWEEP_FILE = "sweep.json"


def run_directories(path: Path, *, begun: bool = False) -> list[RunDirectory]:
    """The run at `path`, or the runs right below it, in the order of a sweep.

    Args:
        path: a run's directory, or a sweep's.
        begun: whether one that was killed before its first manifest counts too.

    Raises InputError: there is none.
    """
    names = (MANIFEST, RESULTS) if begun else (MANIFEST,)
    if _has(path, names):
        return [RunDirectory(path)]
    if not path.is_dir():
        raise InputError(f"{path}: no such folder; give a run directory, or a sweep's")
    try:
        below = [entry for entry in path.iterdir() if not entry.is_symlink() and _has(entry, names)]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    if not below:
        raise InputError(f"{path}: no run here and none right below: {MANIFEST} is missing")
    return [RunDirectory(entry) for entry in sorted(below, key=sweep_order)]


def sweep_members(sweep: Path) -> list[Path]:
    """The directories of a sweep's runs by their numbers, however far each has come."""
    if not sweep.is_dir():
        return []
    below = (entry for entry in sweep.iterdir() if not entry.name.startswith("."))
    return sorted((entry for entry in below if entry.is_dir()), key=sweep_order)


def runs_below(outputs: Path) -> list[RunDirectory]:
    """All runs in the folder of runs that have a manifest, by their paths."""
    manifests = {path for place in _PLACES for path in outputs.glob(f"{place}/{MANIFEST}")}
    return [RunDirectory(path.parent) for path in sorted(manifests)]


def earlier_run(run: Path, resumed: Resumed) -> Path | None:
    """The run that `run` resumed, where it was, or beside that one; None where it is not here.

    It is known by its manifest. So no chain of runs leads in a circle: a manifest would have to
    hold a hash that it is part of.
    """
    for path in (Path(resumed.path), run.resolve().parent / Path(resumed.path).name):
        try:
            if document_sha256(path / MANIFEST) == resumed.manifest_sha256:
                return path
        except (OSError, ValueError):
            continue
    return None


def sweep_order(path: Path) -> tuple[int, str]:
    """What runs of a sweep are sorted by: their number, so that ten comes after nine."""
    number = path.name.partition("-")[0]
    is_number = number.isdecimal() and len(number) <= _MOST_DIGITS
    return (int(number) if is_number else 0, path.name)


def _has(path: Path, names: tuple[str, ...]) -> bool:
    """Whether one of the names is there, if only as something that no reader would open."""
    return any((path / name).is_symlink() or (path / name).exists() for name in names)


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

    def write(self, directory: Path) -> None:
        """Write the file into a sweep's directory."""
        replace(directory / SWEEP_FILE, dumps(self.model_dump(mode="json"), indent=2).encode())


def read_sweep_file(directory: Path) -> SweepFile:
    """Read the file of a sweep; raises InputError: there is none, or it is not one."""
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
    except ValueError as error:
        raise InputError(f"resume: {path}: is not a sweep's file: {reason(error)}") from error
