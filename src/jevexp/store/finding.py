"""Finding runs: at a path, in a sweep, and below the folder of all runs."""

from pathlib import Path

from jevexp.errors import InputError
from jevexp.store.checksums import document_sha256
from jevexp.store.directory import MANIFEST, RESULTS, RunDirectory
from jevexp.store.manifest import Resumed

# Where a run is put below the folder of all runs, and a run of a sweep; conf/hydra/default.yaml
# says so to Hydra.
_PLACES = ("*/*", "sweeps/*/*/*")
# A number has as many digits as any sweep has runs; a longer one is a name.
_MOST_DIGITS = 8


def run_directories(path: Path, *, begun: bool = False) -> list[RunDirectory]:
    """The run at `path`, or the runs right below it, in the order of a sweep.

    Args:
        path: a run's directory, or a sweep's.
        begun: whether one that was killed before its first manifest counts too.

    Raises:
        InputError: there is none.
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
