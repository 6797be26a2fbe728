"""Where the tables of a comparison go."""

from pathlib import Path

from jevexp.analysis.tables import TABLES
from jevexp.errors import InputError
from jevexp.store.directory import MANIFEST
from jevexp.untrusted.files import RefusedPath
from jevexp.untrusted.writing import Folder


def table_folder(path: Path, *, force: bool) -> Path:
    """The folder of the tables, checked before anything is compared; made if need be.

    Raises:
        InputError: it is a run's directory or a file, or a table is there already.
    """
    if (path / MANIFEST).is_file():
        raise InputError(
            f"--csv {path}: is a run; put --csv last, or write --csv=PATH for another folder"
        )
    if not force:
        for table in TABLES:
            if (path / table.name).exists():
                raise InputError(
                    f"{path / table.name}: exists; give another folder, or --force to replace it"
                )
    try:
        # A folder that a person names may be a link of theirs.
        with Folder.named(path) as folder:
            return folder.path
    except RefusedPath as error:
        raise InputError(f"--csv {path}: {error.filename} {error.strerror}") from error
    except OSError as error:
        raise InputError(f"--csv {path}: cannot be made: {error.strerror}") from error
