"""A run's new directory and its ledger: checked, made, and removed after a refusal."""

import shutil
import sysconfig
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import jevexp
from jevexp.errors import InputError
from jevexp.settings import Settings
from jevexp.untrusted.writing import make_folder, make_folders


def check_paths(directory: Path, settings: Settings) -> None:
    """Check the output directory and the ledger before anything is made.

    Raises:
        InputError: the directory exists, or a path lies inside the installed packages.
    """
    if directory.exists():
        raise InputError(f"{directory}: exists already; every run needs a fresh directory")
    _check_outside("the output directory", directory)
    if settings.caps.ledger is not None:
        ledger = Path(settings.caps.ledger)
        _check_outside("caps.ledger", ledger)
        if ledger.is_dir():
            raise InputError(f"caps.ledger: {ledger} is a folder; give a file")
        if (
            ledger.resolve() == directory.resolve()
            or directory.resolve() in ledger.resolve().parents
        ):
            raise InputError(
                f"caps.ledger: {ledger} lies inside the new run; leave it null, and the run makes "
                "a ledger of its own"
            )


def make_directory(directory: Path) -> list[Path]:
    """Make the output directory, which must be new.

    Returns:
        The directory and those of its parents that had to be made, innermost first.

    Raises:
        InputError: it cannot be made, or somebody else made it meanwhile.
    """
    made = [path for path in (directory, *directory.parents) if not path.exists()]
    try:
        make_folders(directory.parent)
        make_folder(directory)
    except FileExistsError as error:
        raise InputError(f"{directory}: exists already; every run needs a fresh one") from error
    except OSError as error:
        raise InputError(f"{directory}: cannot be made: {error.strerror}") from error
    return made


def remove_refused(made: Sequence[Path]) -> None:
    """Remove a refused run's directory, and its parents that were made for it and are empty."""
    shutil.rmtree(made[0])
    with suppress(OSError):
        for parent in made[1:]:
            parent.rmdir()


def _check_outside(what: str, path: Path) -> None:
    package = Path(jevexp.__file__).parent
    for root in {package, *(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib"))}:
        if path.resolve().is_relative_to(root.resolve()):
            raise InputError(f"{what}: {path} lies inside the installed packages; choose another")
